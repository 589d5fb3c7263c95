#pragma once

#include <string>
#include <utility>
#include <vector>

namespace godwit {

/// The parts of a process by name, in the order in which they came: those that others depend on first.
/// @tparam Handle of an actor
template <class Handle>
class members {
 public:
  struct member {
    std::string name;
    Handle handle;
  };

  /// In place of an earlier one of that name, if there is one.
  void join(std::string name, Handle handle) {
    for (auto& one : all_) {
      if (one.name == name) {
        one.handle = std::move(handle);
        return;
      }
    }
    all_.push_back({std::move(name), std::move(handle)});
  }

  const std::vector<member>& all() const { return all_; }

 private:
  std::vector<member> all_;
};

/// The state of a node as the states of its parts make it.
struct node_health {
  std::string state = "ready"; ///< starting, ready, draining, failed
  std::string reason;          ///< of each part that is not ready

  /// Takes a part's state into account.
  void add(const std::string& part, const std::string& part_state, const std::string& part_reason) {
    if (part_state == "ready")
      return;
    if (state == "ready")
      state = "starting";
    if (!reason.empty())
      reason += "; ";
    reason += part + " is " + part_state;
    if (!part_reason.empty())
      reason += ": " + part_reason;
  }
};

} // namespace godwit
