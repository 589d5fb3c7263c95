#pragma once

#include "messages/ids.hpp"
#include "messages/result.hpp"

#include <string_view>
#include <vector>

namespace godwit::cli {

/// Reads token ids: a JSON array of numbers, or decimal numbers separated by white space.
/// @param size of the vocabulary
/// @returns `invalid_argument` naming the place, counted from 0, of the first that is no id below `size`
result<std::vector<token_id>> read_token_list(std::string_view text, token_id size);

} // namespace godwit::cli
