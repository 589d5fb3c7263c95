// The bulk connection to a peer, which may die while all else is well.

#include "services/link/peers.hpp"

#include <algorithm>
#include <utility>

namespace godwit::link {

void peers::dial_bulk(peer& one, moment now) {
  one.bulk = network_.dial(lane::bulk, one.record);
  one.bulk_dialled = now;
  one.bulk_greeted = false;
  due_ = std::min(due_, bulk_dead(one));
}

/// The other side sends its beats back on a connection that it knows: so it has to know it before there is
/// much on it.
bool peers::greet_bulk(peer& one, moment now) {
  if (one.bulk_greeted)
    return true;
  frame_header header;
  header.kind = frame_kind::beat;
  header.session = one.mine;
  parcel said{encode(header), {}};
  stamp(said);
  if (!network_.send(one.bulk, said))
    return false;
  one.bulk_greeted = true;
  one.bulk_heard = now;
  due_ = std::min(due_, bulk_dead(one));
  return true;
}

void peers::on_bulk(peer& one, const return_path& path, bool counts) {
  if (one.bulk_back.id != path.id)
    one.bulk_back = path;
  one.bulk_came += counts ? 1 : 0;
}

moment peers::bulk_dead(const peer& one) const {
  if (one.bulk == 0)
    return never;
  if (one.bulk_greeted)
    return one.bulk_heard + pace_.deafness();
  return one.bulk_out.empty() ? never : one.bulk_dialled + pace_.silence();
}

void peers::redial_bulk(peer& one, moment now) {
  // What was on it is lost, and nobody would be told: then the conversation is over.
  if (one.bulk_taken < one.bulk_gone)
    return lose(one, end_cause::peer_lost, "its bulk connection broke with something on it", now);
  link_counters::add(counters_.bulk_redials);
  network_.hang_up(std::exchange(one.bulk, 0));
  one.bulk_greeted = false;
  if (!one.bulk_out.empty())
    dial_bulk(one, now);
}

void peers::forget_bulk(peer& one) {
  one.bulk_gone = 0;
  one.bulk_taken = 0;
  one.bulk_came = 0;
  one.bulk_back = {};
}

} // namespace godwit::link
