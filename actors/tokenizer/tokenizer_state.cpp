#include "actors/tokenizer/tokenizer_state.hpp"

#include <nlohmann/json.hpp>

#include <array>

namespace godwit {

namespace {

using json = nlohmann::ordered_json;

std::string_view view(capnp::Data::Reader data) {
  return {reinterpret_cast<const char*>(data.begin()), data.size()};
}

std::string_view view(capnp::Text::Reader text) {
  return {text.cStr(), text.size()};
}

capnp::Data::Reader bytes(std::string_view text) {
  return {reinterpret_cast<const capnp::byte*>(text.data()), text.size()};
}

/// @param what and unit of a sentence such as "the text has more than 8 bytes"
tl::unexpected<error> refuse_size(
  std::string_view what, std::size_t most, std::string_view unit, const char* param) {
  auto message = std::string(what) + " more than " + std::to_string(most) + " ";
  return fail(errc::too_large, message += unit, param);
}

/// The message as the client sent it, or one of the fields that there are.
result<json> message_of(schema::ChatMessage::Reader message) {
  if (message.getJson().size() > 0) {
    auto parsed = json::parse(view(message.getJson()), nullptr, false);
    if (!parsed.is_object())
      return fail(errc::invalid_argument, "a message is not a JSON object", "messages");
    return parsed;
  }
  json out = {{"role", view(message.getRole())}, {"content", view(message.getContent())}};
  if (message.getName().size() > 0)
    out["name"] = view(message.getName());
  return out;
}

template <class Builder>
void put_ids(Builder list, const std::vector<token_id>& ids) {
  for (unsigned i = 0; i < ids.size(); ++i)
    list.set(i, ids[i]);
}

} // namespace

tokenizer_state::tokenizer_state(
  std::shared_ptr<const tokenizer> words, std::shared_ptr<const chat_template> chat, tokenizer_limits most)
  : words_(std::move(words)), chat_(std::move(chat)), most_(most) {}

template <class Answer>
auto tokenizer_state::counted(Answer answer) -> decltype(answer()) {
  ++requests_;
  auto out =
    draining_ ? decltype(answer())(fail(errc::draining, "the tokenizer takes no new work")) : answer();
  failures_ += out ? 0 : 1;
  return out;
}

std::vector<token_id> tokenizer_state::encode_counted(std::string_view text, bool special) {
  auto ids = words_->encode(text, special);
  encoded_ += ids.size();
  return ids;
}

result<letter<schema::TokenIds>> tokenizer_state::encode(schema::EncodeRequest::Reader request) {
  const auto answer = [&]() -> result<letter<schema::TokenIds>> {
    const auto text = view(request.getText());
    if (text.size() > most_.text_bytes)
      return refuse_size("the text has", most_.text_bytes, "bytes", "text");
    const auto ids = encode_counted(text, request.getSpecial());
    return letter<schema::TokenIds>::make(
      [&](schema::TokenIds::Builder b) { put_ids(b.initIds(static_cast<unsigned>(ids.size())), ids); });
  };
  return counted(answer);
}

result<letter<schema::DecodedText>> tokenizer_state::decode(schema::DecodeRequest::Reader request) {
  const auto answer = [&]() -> result<letter<schema::DecodedText>> {
    const auto given = request.getIds();
    if (given.size() > most_.ids)
      return refuse_size("there are", most_.ids, "ids", "ids");
    const auto known = words_->text()->size();
    std::vector<token_id> ids;
    ids.reserve(given.size());
    for (const auto id : given) {
      if (id >= known)
        return fail(errc::invalid_argument,
          "token " + std::to_string(id) + " is not in the vocabulary of " + std::to_string(known), "ids");
      ids.push_back(id);
    }
    decoded_ += ids.size();
    const auto text = words_->decode(ids, request.getSpecial());
    return letter<schema::DecodedText>::make([&](schema::DecodedText::Builder b) { b.setText(bytes(text)); });
  };
  return counted(answer);
}

result<letter<schema::RenderedChat>> tokenizer_state::render(schema::RenderRequest::Reader request) {
  const auto answer = [&]() -> result<letter<schema::RenderedChat>> {
    const auto given = request.getMessages();
    if (given.size() > most_.messages)
      return refuse_size("there are", most_.messages, "messages", "messages");
    auto messages = json::array();
    for (const auto message : given) {
      auto made = message_of(message);
      if (!made)
        return fail(made);
      messages.push_back(std::move(*made));
    }
    const auto text = chat_->render(messages, request.getAddGenerationPrompt());
    if (!text)
      return fail(text);
    if (text->size() > most_.text_bytes)
      return refuse_size("the rendered chat has", most_.text_bytes, "bytes", "messages");
    std::vector<token_id> ids;
    if (!request.getTextOnly()) {
      ids = encode_counted(*text, true);
      // Many templates write it themselves.
      const auto begin = words_->begin_token();
      if (begin && (ids.empty() || ids.front() != *begin))
        ids.insert(ids.begin(), *begin);
    }
    return letter<schema::RenderedChat>::make([&](schema::RenderedChat::Builder b) {
      b.setText(bytes(*text));
      put_ids(b.initIds(static_cast<unsigned>(ids.size())), ids);
    });
  };
  return counted(answer);
}

letter<schema::ActorStatus> tokenizer_state::status() const {
  return letter<schema::ActorStatus>::make([&](schema::ActorStatus::Builder b) {
    b.setName("tokenizer");
    b.setState(draining_ ? "draining" : "ready");
    const std::array<std::pair<const char*, std::uint64_t>, 4> gauges{{{"requests", requests_},
      {"failures", failures_}, {"encoded_tokens", encoded_}, {"decoded_tokens", decoded_}}};
    auto list = b.initGauges(gauges.size());
    for (unsigned i = 0; i < gauges.size(); ++i) {
      list[i].setName(gauges[i].first);
      list[i].setValue(static_cast<double>(gauges[i].second));
    }
  });
}

} // namespace godwit
