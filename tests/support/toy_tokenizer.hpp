#pragma once

#include "messages/catalogue.hpp"
#include "messages/text.hpp"
#include "tests/support/toy_model.hpp"

#include <caf/typed_event_based_actor.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace godwit {

/// The tokenizer of the toy model, as an actor.
inline tokenizer_actor::behavior_type toy_tokenizer(
  tokenizer_actor::pointer self, const std::shared_ptr<const toy_text>& text) {
  const auto set = [](const std::vector<token_id>& ids, capnp::List<std::uint32_t>::Builder list) {
    for (unsigned i = 0; i < ids.size(); ++i)
      list.set(i, ids[i]);
  };
  return {
    [text, set](const letter<schema::EncodeRequest>& mail) {
      const auto data = mail.read().getText();
      const auto ids = text->encode({reinterpret_cast<const char*>(data.begin()), data.size()});
      return letter<schema::TokenIds>::make(
        [&](schema::TokenIds::Builder b) { set(ids, b.initIds(static_cast<unsigned>(ids.size()))); });
    },
    [](const letter<schema::DecodeRequest>&) { return letter<schema::DecodedText>(); },
    [text, set](const letter<schema::RenderRequest>& mail) {
      std::vector<std::pair<std::string, std::string>> messages;
      for (const auto message : mail.read().getMessages())
        messages.emplace_back(text_of(message.getRole()), text_of(message.getContent()));
      const auto chat = toy_chat(messages);
      const auto ids = mail.read().getTextOnly() ? std::vector<token_id>() : text->encode(chat);
      return letter<schema::RenderedChat>::make([&](schema::RenderedChat::Builder b) {
        b.setText(capnp::Data::Reader(reinterpret_cast<const capnp::byte*>(chat.data()), chat.size()));
        set(ids, b.initIds(static_cast<unsigned>(ids.size())));
      });
    },
    [](status_atom) { return letter<schema::ActorStatus>(); },
    [](drain_atom) { return letter<schema::Drained>(); },
    [self](stop_atom) { self->quit(); },
  };
}

} // namespace godwit
