#pragma once

#include "messages/ids.hpp"

#include <capnp/list.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace godwit {

/// The nodes that compute prompts for others, what each has to do, and which beginnings of texts it has
/// computed lately. All of it is a guess: a node may have lost a beginning, and then computes more than was
/// thought.
class prompt_sources {
 public:
  /// A choice, to be given back to done().
  struct choice {
    std::string name;
    std::uint64_t tokens = 0; ///< that it is thought to compute
  };

  /// @param remembered beginnings of texts
  explicit prompt_sources(std::size_t remembered = 65'536) : remembered_(remembered) {}

  void put(const std::string& name) { all_.try_emplace(name); }
  /// It is gone, or takes no new prompts.
  void remove(std::string_view name);
  bool empty() const { return all_.empty(); }
  std::size_t size() const { return all_.size(); }
  /// Tokens that a node is thought to have to compute.
  std::uint64_t queued(std::string_view name) const;

  /// The node that has the least to compute with this prompt: what is queued there, and what it has not
  /// computed of the prompt's beginning yet. Of equal ones that to which less was given so far. It counts
  /// from now on. @returns nothing if there is none
  std::optional<choice> choose(std::string_view tenant, capnp::List<std::uint32_t>::Reader tokens);
  /// The prompt is computed, or will not be.
  void done(const choice& what);

  /// Tokens after which beginnings are told apart.
  static constexpr std::uint32_t segment = 256;

 private:
  struct source {
    std::uint64_t queued = 0;
    std::uint64_t given = 0; ///< ever
  };

  void remember(const std::vector<std::uint64_t>& beginnings, const std::string& name);

  std::size_t remembered_;
  std::map<std::string, source, std::less<>> all_;
  std::unordered_map<std::uint64_t, std::string> computed_; ///< by a hash of the beginning
  std::deque<std::uint64_t> order_;                         ///< of computed_, the oldest first
};

} // namespace godwit
