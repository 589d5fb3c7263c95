#include "actors/session/event_id.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

namespace {

const session_id zeros{"ses_00000000000000000000000000000000"};
const session_id counted{"ses_0123456789abcdef0123456789abcdef"};

} // namespace

TEST_CASE("an event id is the session's twelve digits and the place's twelve") {
  // The first twelve were computed by another program from FNV-1a and MurmurHash3's finaliser.
  CHECK(event_ids(zeros).text({1, 0}) == "384095359836000000001000");
  CHECK(event_ids(counted).text({123456789, 42}) == "855604393804123456789042");
}

TEST_CASE("event ids rise with their places, as texts and as numbers of one width") {
  const event_ids ids(counted);
  const event_place places[] = {
    {1, 0}, {1, 1}, {1, event_place::end}, {2, 0}, {10, 0}, {10, 11}, {999'999'999, 0}};
  for (std::size_t i = 1; i < std::size(places); ++i) {
    CHECK(places[i - 1] < places[i]);
    CHECK(ids.text(places[i - 1]) < ids.text(places[i]));
    CHECK(ids.text(places[i]).size() == event_ids::size);
    CHECK(ids.text(places[i]).front() != '0');
  }
}

TEST_CASE("an event id is read back, and one that is not this session's or not there yet is refused") {
  const event_ids ids(counted);
  CHECK(ids.parse(ids.text({7, 2}), 7) == event_place{7, 2});
  CHECK(ids.parse(ids.text({7, 2}), 100) == event_place{7, 2});
  const auto refused = [&](const std::string& id) {
    const auto parsed = ids.parse(id, 7);
    return !parsed && parsed.error().code == errc::invalid_argument && parsed.error().param == "after";
  };
  CHECK(refused(ids.text({8, 0})));
  CHECK(refused(event_ids(zeros).text({1, 0})));
  CHECK(refused(""));
  CHECK(refused("x"));
  CHECK(refused("-1"));
  CHECK(refused(std::string(40, '9')));
  CHECK(refused(ids.text({7, 0}) + "0"));
  auto letter = ids.text({7, 0});
  letter[20] = 'a';
  CHECK(refused(letter));
}
