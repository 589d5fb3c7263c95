#pragma once

#include "services/link/remote_actor.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_control_block.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

namespace godwit::link {

/// The handles of actors on other nodes that somebody here holds: one for each actor and interface. Any
/// thread may call.
class remote_handles {
 public:
  using maker = std::function<caf::strong_actor_ptr()>;

  /// Of an actor by the name under which its node has published it.
  caf::strong_actor_ptr named(
    const std::string& node, const std::string& name, const interface_codec& codec, const maker& make);
  /// Of an actor that its node has passed here once more.
  caf::strong_actor_ptr numbered(
    const std::string& node, std::uint64_t id, const interface_codec& codec, const maker& make);

  /// All handles of an actor.
  std::vector<caf::strong_actor_ptr> find(const std::string& node, std::uint64_t id) const;
  /// All handles of a node, which are known no more.
  std::vector<caf::strong_actor_ptr> lose(const std::string& node);
  std::vector<caf::strong_actor_ptr> lose_all();

 private:
  template <class Id>
  using table = std::map<std::tuple<std::string, Id, const interface_codec*>, caf::weak_actor_ptr>;

  void tidy();

  mutable std::mutex mutex_;
  table<std::string> by_name_;
  table<std::uint64_t> by_id_;
  std::size_t tidy_at_ = 64;
};

} // namespace godwit::link
