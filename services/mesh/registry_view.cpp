#include "services/mesh/registry_view.hpp"

#include <algorithm>
#include <utility>

namespace godwit {

std::vector<registry_change> registry_view::read(const std::vector<tabled_node>& table, moment now) {
  std::map<node_name, node_record> alive;
  for (const auto& each : table)
    if (each.record.name != self_ && each.age <= limit_)
      alive.insert_or_assign(each.record.name, each.record);

  std::vector<registry_change> out;
  kept_ = false;
  for (const auto& [name, record] : listed_) {
    if (alive.contains(name))
      continue;
    if (now < steady_at_) {
      kept_ = true;
      alive.emplace(name, record);
    } else {
      out.push_back({record, false});
    }
  }
  for (const auto& [name, record] : alive)
    if (const auto before = listed_.find(name); before == listed_.end() || before->second != record)
      out.push_back({record, true});
  listed_ = std::move(alive);
  return out;
}

void registry_view::away(moment now) {
  // The others have to find the database first, and then to beat.
  steady_at_ = std::max(steady_at_, now + 2 * limit_);
}

} // namespace godwit
