#pragma once

#include "services/mesh/registry.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace godwit {

/// A node as a table of nodes has it.
struct tabled_node {
  node_record record;
  std::chrono::milliseconds age{0}; ///< of its last beat, by the clock of the table's database
};

/// Which nodes of a table count, and what has changed from one reading to the next. Plain: time is an
/// argument.
///
/// A node counts while its beat is not older than the limit. While the table was away nobody could beat, so
/// that everybody's beat is old when it is back: for a while after that nobody is taken off.
class registry_view {
 public:
  using moment = std::chrono::milliseconds; ///< since any fixed time

  /// @param limit for the age of a beat
  registry_view(node_name self, moment limit) : self_(std::move(self)), limit_(limit) {}

  /// The table as it was read at a time, whole.
  std::vector<registry_change> read(const std::vector<tabled_node>& table, moment now);
  /// The table could not be read or written, or only slowly: up to this time beats may be missing.
  void away(moment now);
  /// When those that are only listed because of that have to be looked at again; moment::max(): there are
  /// none.
  moment next() const { return kept_ ? steady_at_ : moment::max(); }

  const std::map<node_name, node_record>& listed() const { return listed_; }

 private:
  const node_name self_;
  const moment limit_;
  std::map<node_name, node_record> listed_;
  moment steady_at_{0}; ///< from then on a missing beat is its node's fault
  bool kept_ = false;
};

/// Whether a name that another process holds can be had: it can when that process beats no more.
class name_watch {
 public:
  /// What the table says of the name. @returns whether its holder was seen to beat
  bool beats(const std::string& holder, std::int64_t beat) {
    const bool same = holder == holder_;
    const bool renewed = same && beat != beat_;
    holder_ = holder;
    beat_ = beat;
    return renewed;
  }

 private:
  std::string holder_;
  std::int64_t beat_ = 0;
};

} // namespace godwit
