#pragma once

#include "kernels/ops/op_set.hpp"
#include "messages/result.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::ops {

/// A line of the dispatch table.
struct implementation {
  std::string name;        ///< what GODWIT_OPS takes: "reference", "cpu:avx2", …
  std::string description; ///< what it needs and what it is for
  bool available = false;
  std::string reason; ///< why it is available, or why not
  bool chosen = false;
};

/// All implementations in order of preference, the one that `wanted` leads to marked as chosen.
/// @param wanted as for `choose`; an impossible one leaves all unmarked
std::vector<implementation> implementations(std::string_view wanted = {});

/// The name of the implementation to use.
/// @param wanted a name of the table; "cpu" for the best of its targets; empty for GODWIT_OPS if set, else
/// "cpu"
/// @returns `unsupported` naming the choices
result<std::string> choose(std::string_view wanted = {});

/// @param name what `choose` returned
/// @returns `unsupported` for a shape that the implementation cannot take
result<std::unique_ptr<op_set>> make_op_set(std::string_view name, const op_shape& shape, team& threads);

} // namespace godwit::ops
