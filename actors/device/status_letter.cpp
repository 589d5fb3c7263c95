#include "actors/device/status_letter.hpp"

#include <string>

namespace godwit {

letter<schema::ActorStatus> status_letter(
  const char* name, std::string_view state, std::string_view reason, std::span<const gauge> gauges) {
  return letter<schema::ActorStatus>::make([&](schema::ActorStatus::Builder b) {
    b.setName(name);
    b.setState(std::string(state));
    b.setReason(std::string(reason));
    auto list = b.initGauges(static_cast<unsigned>(gauges.size()));
    for (unsigned i = 0; i < list.size(); ++i) {
      list[i].setName(gauges[i].first);
      list[i].setValue(gauges[i].second);
    }
  });
}

letter<schema::Drained> drained_letter(std::uint32_t remaining) {
  return letter<schema::Drained>::make([&](schema::Drained::Builder b) { b.setRemaining(remaining); });
}

} // namespace godwit
