#include "services/link/actor_codec.hpp"

#include "messages/catalogue.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using namespace godwit::link;

namespace {

/// No actor is passed in these tests.
struct no_references : reference_table {
  result<actor_reference> give(const caf::strong_actor_ptr&, const interface_codec&) override {
    return fail(errc::internal, "none");
  }
  result<caf::strong_actor_ptr> take(const actor_reference&, const interface_codec&) override {
    return fail(errc::internal, "none");
  }
};

incoming as_incoming(const packed_message& packed) {
  incoming mail;
  mail.header.type = packed.type;
  mail.header.extras = packed.extras;
  mail.words = packed.words;
  return mail;
}

} // namespace

TEST_CASE("every interface of the catalogue has a codec, with a number for each signature") {
  // codec_of checks that no two of one interface are equal.
  CHECK(codec_of<tokenizer_actor>().signatures.size() == 6);
  CHECK(codec_of<router_actor>().find(capnp::typeId<schema::CreditGrant>()) != nullptr);
  CHECK_FALSE(codec_of<cache_actor>().signatures.empty());
  CHECK_FALSE(codec_of<device_actor>().signatures.empty());
  CHECK_FALSE(codec_of<prefill_actor>().signatures.empty());
  CHECK_FALSE(codec_of<decode_actor>().signatures.empty());
  CHECK_FALSE(codec_of<session_actor>().signatures.empty());
  CHECK_FALSE(codec_of<directory_actor>().signatures.empty());
  CHECK_FALSE(codec_of<node_actor>().signatures.empty());
}

TEST_CASE("the number of a single letter is its schema's") {
  // As tokenizer.capnp's compiler made it: other nodes are built from the same file.
  const auto content = caf::make_message(letter<schema::EncodeRequest>());
  const auto* const found = codec_of<tokenizer_actor>().match(content);
  REQUIRE(found != nullptr);
  CHECK(found->in.type == capnp::typeId<schema::EncodeRequest>());
  CHECK(found->out.type == capnp::typeId<schema::TokenIds>());
}

TEST_CASE("atoms tell signatures apart by their value") {
  const auto& codec = codec_of<session_actor>();
  const auto* const info = codec.match(caf::make_message(info_atom::value));
  const auto* const transcript = codec.match(caf::make_message(transcript_atom::value));
  REQUIRE(info != nullptr);
  REQUIRE(transcript != nullptr);
  CHECK(info->in.type != transcript->in.type);
  CHECK(codec.match(caf::make_message(erase_atom::value)) == nullptr);
  CHECK(codec.match(caf::make_message(info_atom::value, 3)) == nullptr);
}

TEST_CASE("texts, truth values and atoms come out as they went in") {
  no_references none;
  const auto content = caf::make_message(escalate_atom::value, std::string("cache"), std::string("a\0b", 3));
  const auto* const escalate = codec_of<node_actor>().match(content);
  REQUIRE(escalate != nullptr);
  const auto packed = escalate->in.pack(content, none);
  REQUIRE(packed);
  const auto back = escalate->in.unpack(as_incoming(*packed), none);
  REQUIRE(back);
  REQUIRE(back->match_elements<escalate_atom, std::string, std::string>());
  CHECK(back->get_as<std::string>(2) == std::string("a\0b", 3));

  const auto* const passivate = codec_of<session_actor>().match(caf::make_message(passivate_atom::value));
  REQUIRE(passivate != nullptr);
  const auto truth = passivate->out.pack(caf::make_message(true), none);
  REQUIRE(truth);
  CHECK(passivate->out.unpack(as_incoming(*truth), none)->get_as<bool>(0));
}

TEST_CASE("messages whose elements are missing, cut or too many are refused") {
  no_references none;
  const auto content = caf::make_message(escalate_atom::value, std::string("cache"), std::string("down"));
  const auto& codec = codec_of<node_actor>().match(content)->in;
  const auto packed = *codec.pack(content, none);
  for (std::size_t length = 0; length < packed.extras.size(); ++length) {
    auto cut = packed;
    cut.extras.resize(length);
    CHECK(codec.unpack(as_incoming(cut), none).error().code == errc::corrupt);
  }
  auto more = packed;
  append_extra(more.extras, 1, {});
  CHECK(codec.unpack(as_incoming(more), none).error().code == errc::corrupt);
  auto other = packed;
  other.extras[0] = std::byte{2};
  CHECK(codec.unpack(as_incoming(other), none).error().code == errc::corrupt);
}

TEST_CASE("words that are no letter of the type are refused") {
  no_references none;
  const auto& codec =
    codec_of<tokenizer_actor>().match(caf::make_message(letter<schema::RenderRequest>()))->in;
  const std::vector<std::byte> garbage(64, std::byte{0xee});
  packed_message packed;
  packed.type = codec.type;
  packed.words = garbage;
  CHECK_FALSE(codec.unpack(as_incoming(packed), none));
}

TEST_CASE("references to actors are checked") {
  const actor_reference mine{false, 7, {}};
  const auto back = decode_reference(encode_reference(mine));
  REQUIRE(back);
  CHECK(back->id == 7);
  CHECK(decode_reference(encode_reference({true, 0, "router"}))->name == "router");
  CHECK_FALSE(decode_reference(encode_reference({false, 0, "router"}))); // not the sender's to name
  CHECK_FALSE(decode_reference(encode_reference({true, 0, ""})));
  CHECK_FALSE(decode_reference(encode_reference({true, 7, "router"})));
  const auto bytes = encode_reference(mine);
  for (std::size_t length = 0; length < bytes.size(); ++length)
    CHECK_FALSE(decode_reference(std::span(bytes).first(length)));
}
