#include "services/journal/codec.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using namespace godwit::journal_codec;

namespace {

const session_id some("ses_1");

journal_record record() {
  return journal_record::make([](schema::Record::Builder b) { b.initClosed().setCause("bye"); });
}

journal_head head() {
  journal_head made;
  made.session = some;
  made.tenant = tenant_id("tenant");
  made.owner = node_name("node");
  made.sequence = 5;
  made.epoch = 3;
  made.running = true;
  return made;
}

/// How many single-bit changes of a value still read as something.
template <class Open>
std::size_t accepted_changes(std::string stored, Open open) {
  std::size_t accepted = 0;
  for (std::size_t bit = 0; bit < stored.size() * 8; ++bit) {
    const auto flip = [&] { stored[bit / 8] = static_cast<char>(stored[bit / 8] ^ (1 << (bit % 8))); };
    flip();
    accepted += open(stored) ? 1U : 0U;
    flip();
  }
  return accepted;
}

} // namespace

TEST_CASE("keys of records sort by session and then by sequence") {
  CHECK(record_key(session_id("ab"), 258)
        == std::string("\x02"
                       "ab"
                       "\0\0\0\0\0\0\x01\x02",
          11));
  CHECK(record_key(some, 255) < record_key(some, 256));
  CHECK(sequence_of(some, record_key(some, 77)) == 77);
  CHECK_FALSE(sequence_of(some, record_key(session_id("ses_2"), 77)));
  CHECK_FALSE(sequence_of(some, record_key(session_id("ses_11"), 77)));
  CHECK_FALSE(sequence_of(some, ""));
}

TEST_CASE("a stored record has the layout of format 1") {
  const auto mail = record();
  const auto stored = seal_record(some, 9, 0x0102030405060708, mail);
  const auto size = mail.bytes().size();
  REQUIRE(stored.size() == 16 + size + 8);
  CHECK(stored.substr(0, 4) == std::string("R\x01\0\0", 4));
  CHECK(static_cast<std::uint8_t>(stored[4]) == size);
  CHECK(stored.substr(8, 8) == "\x08\x07\x06\x05\x04\x03\x02\x01");
  const auto back = open_record(some, 9, stored);
  REQUIRE(back);
  CHECK(back->sequence == 9);
  CHECK(back->epoch == 0x0102030405060708);
  CHECK(back->record.read().getClosed().getCause() == "bye");
}

TEST_CASE("no single changed bit of a record or a head goes unnoticed") {
  CHECK(accepted_changes(seal_record(some, 9, 1, record()), [](const std::string& stored) {
    return open_record(some, 9, stored).has_value();
  }) == 0);
  CHECK(accepted_changes(seal_head(head()), [](const std::string& stored) {
    return open_head(some, stored).has_value();
  }) == 0);
}

TEST_CASE("a record that is cut anywhere, or longer, is refused") {
  const auto stored = seal_record(some, 9, 1, record());
  for (std::size_t length = 0; length < stored.size(); ++length)
    CHECK_FALSE(open_record(some, 9, std::string_view(stored).substr(0, length)));
  CHECK_FALSE(open_record(some, 9, stored + '\0'));
  const auto sealed = seal_head(head());
  for (std::size_t length = 0; length < sealed.size(); ++length)
    CHECK_FALSE(open_head(some, std::string_view(sealed).substr(0, length)));
  CHECK_FALSE(open_head(some, sealed + '\0'));
}

TEST_CASE("a value at another key's place is refused") {
  const auto stored = seal_record(some, 9, 1, record());
  CHECK(open_record(some, 10, stored).error().code == errc::corrupt);
  CHECK(open_record(session_id("ses_2"), 9, stored).error().code == errc::corrupt);
  CHECK(open_head(session_id("ses_2"), seal_head(head())).error().code == errc::corrupt);
}

TEST_CASE("a head reads back as it was") {
  const auto back = open_head(some, seal_head(head()));
  REQUIRE(back);
  CHECK(back->tenant.value == "tenant");
  CHECK(back->owner.value == "node");
  CHECK(back->sequence == 5);
  CHECK(back->epoch == 3);
  CHECK(back->running);
}

TEST_CASE("a record of an unknown kind is unsupported, not damaged") {
  // The union's discriminant of a whole, checked letter, set to a kind of the future.
  const auto mail = record();
  std::vector<std::byte> bytes(mail.bytes().begin(), mail.bytes().end());
  const auto known = static_cast<std::uint16_t>(mail.read().which());
  for (std::size_t i = 16; i + 1 < bytes.size(); i += 2)
    if (bytes[i] == std::byte(known & 0xff) && bytes[i + 1] == std::byte{0}) {
      bytes[i] = std::byte{200};
      break;
    }
  const auto later = journal_record::parse(bytes);
  REQUIRE(later);
  REQUIRE(static_cast<unsigned>(later->read().which()) == 200);
  CHECK(open_record(some, 9, seal_record(some, 9, 1, *later)).error().code == errc::unsupported);
}
