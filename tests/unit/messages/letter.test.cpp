#include "messages/letter.hpp"

#include "messages/actor_error.hpp"
#include "messages/catalogue.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <catch2/catch.hpp>

using namespace godwit;

namespace {

letter<schema::RenderRequest> two_messages() {
  return letter<schema::RenderRequest>::make([](schema::RenderRequest::Builder b) {
    auto list = b.initMessages(2);
    list[0].setRole("system");
    list[0].setContent("Be short.");
    list[1].setRole("user");
    list[1].setContent("Hi");
  });
}

} // namespace

TEST_CASE("a letter reads back what was written into it") {
  const auto mail = two_messages();
  REQUIRE(mail.read().getMessages().size() == 2);
  CHECK(mail.read().getMessages()[1].getContent() == "Hi");
  CHECK(mail.read().getAddGenerationPrompt());
}

TEST_CASE("an empty letter has the defaults of its schema") {
  CHECK(letter<schema::Sampling>().read().getTemperature() == 1.0F);
}

TEST_CASE("a letter survives the wire at every alignment") {
  const auto mail = two_messages();
  for (std::size_t shift = 0; shift < 8; ++shift) {
    std::vector<std::byte> frame(mail.bytes().size() + shift);
    std::copy(mail.bytes().begin(), mail.bytes().end(), frame.begin() + static_cast<std::ptrdiff_t>(shift));
    const auto back = letter<schema::RenderRequest>::parse(std::span(frame).subspan(shift));
    REQUIRE(back);
    CHECK(back->read().getMessages()[0].getContent() == "Be short.");
  }
}

TEST_CASE("a letter that is cut anywhere is refused") {
  const auto mail = two_messages();
  for (std::size_t length = 0; length < mail.bytes().size(); ++length)
    CHECK_FALSE(letter<schema::RenderRequest>::parse(mail.bytes().first(length)));
}

TEST_CASE("a letter over the size limit is refused by its size") {
  const auto back =
    letter<schema::RenderRequest>::parse(two_messages().bytes(), {}, {.bytes = 16, .depth = 16});
  REQUIRE_FALSE(back);
  CHECK(back.error().code == errc::too_large);
}

TEST_CASE("a letter travels between actors as a pointer") {
  caf::actor_system_config config;
  caf::actor_system system(config);
  auto echo = system.spawn([](tokenizer_actor::pointer) -> tokenizer_actor::behavior_type {
    return {
      [](const letter<schema::EncodeRequest>&) { return letter<schema::TokenIds>(); },
      [](const letter<schema::DecodeRequest>&) { return letter<schema::DecodedText>(); },
      [](const letter<schema::RenderRequest>& ask) -> caf::result<letter<schema::RenderedChat>> {
        if (ask.read().getMessages().size() != 2)
          return to_caf_error(error{errc::invalid_argument, "two", "messages", ""});
        return letter<schema::RenderedChat>::make([](auto b) { b.initIds(7); });
      },
      [](status_atom) { return letter<schema::ActorStatus>(); },
      [](drain_atom) { return letter<schema::Drained>(); },
      [](stop_atom) {},
    };
  });
  caf::scoped_actor self{system};
  self->request(echo, std::chrono::seconds(5), two_messages())
    .receive([](const letter<schema::RenderedChat>& chat) { CHECK(chat.read().getIds().size() == 7); },
      [](const caf::error&) { FAIL(); });
  self->request(echo, std::chrono::seconds(5), letter<schema::RenderRequest>())
    .receive([](const letter<schema::RenderedChat>&) { FAIL(); },
      [](const caf::error& failure) {
        CHECK(from_caf_error(failure) == error{errc::invalid_argument, "two", "messages", ""});
      });
}
