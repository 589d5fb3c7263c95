#include "actors/tokenizer/tokenizer_state.hpp"
#include "kernels/gguf/writer.hpp"
#include "tests/support/byte_tokenizer.hpp"
#include "tests/support/tiny_vocabulary.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

namespace {

tokenizer_state state_with(const std::string& source, tokenizer_limits most = {}) {
  gguf::writer made;
  made.add("tokenizer.chat_template", source);
  const auto bytes = made.finish();
  const auto file = gguf::file::parse(bytes);
  REQUIRE(file);
  const auto chat = chat_template::load(**file);
  REQUIRE(chat);
  return {std::make_shared<const byte_tokenizer>(), *chat, most};
}

letter<schema::EncodeRequest> text_of(std::string_view text, bool special) {
  return letter<schema::EncodeRequest>::make([&](schema::EncodeRequest::Builder b) {
    b.setText({reinterpret_cast<const capnp::byte*>(text.data()), text.size()});
    b.setSpecial(special);
  });
}

std::vector<token_id> ids_of(capnp::List<std::uint32_t>::Reader list) {
  std::vector<token_id> out;
  for (const auto id : list)
    out.push_back(id);
  return out;
}

std::string text_of(capnp::Data::Reader data) {
  return {reinterpret_cast<const char*>(data.begin()), data.size()};
}

letter<schema::DecodeRequest> tokens_of(std::vector<token_id> ids, bool special) {
  return letter<schema::DecodeRequest>::make([&](schema::DecodeRequest::Builder b) {
    auto list = b.initIds(static_cast<unsigned>(ids.size()));
    for (unsigned i = 0; i < ids.size(); ++i)
      list.set(i, ids[i]);
    b.setSpecial(special);
  });
}

letter<schema::RenderRequest> chat_of(const std::vector<std::string>& raw, bool text_only = false) {
  return letter<schema::RenderRequest>::make([&](schema::RenderRequest::Builder b) {
    auto list = b.initMessages(static_cast<unsigned>(raw.size()) + 1);
    list[0].setRole("system");
    list[0].setContent("Be<end>");
    for (unsigned i = 0; i < raw.size(); ++i)
      list[i + 1].setJson(raw[i]);
    b.setTextOnly(text_only);
  });
}

double gauge(const tokenizer_state& state, const std::string& name) {
  const auto status = state.status();
  for (const auto one : status.read().getGauges())
    if (name == one.getName().cStr())
      return one.getValue();
  return -1;
}

} // namespace

TEST_CASE("text is encoded, with special tokens where they are asked for") {
  auto state = state_with("x");
  CHECK(ids_of((*state.encode(text_of("a<end>", true).read())).read().getIds())
        == std::vector<token_id>{'a', 256});
  CHECK((*state.encode(text_of("a<end>", false).read())).read().getIds().size() == 6);
  CHECK((*state.encode(text_of("", false).read())).read().getIds().size() == 0);
}

TEST_CASE("a prompt begins with the model's begin token once, whether the template writes it or not") {
  for (const std::string source : {"{{ bos_token }}ab", "ab"}) {
    const made_file file(competing_pieces().write().add("tokenizer.chat_template", source).finish());
    tokenizer_state state{tokenizer::load(*file).value(), chat_template::load(*file).value(), {}};
    const auto ids = ids_of((*state.render(chat_of({}).read())).read().getIds());
    REQUIRE(ids.size() == 2);
    CHECK(ids[0] == 1);
  }
}

TEST_CASE("ids are decoded, and one that is not in the vocabulary is refused") {
  auto state = state_with("x");
  CHECK(text_of((*state.decode(tokens_of({'h', 'i', 257}, false).read())).read().getText()) == "hi");
  CHECK(text_of((*state.decode(tokens_of({'h', 'i', 257}, true).read())).read().getText()) == "hi<mark>");
  const auto wrong = state.decode(tokens_of({'h', 258}, false).read());
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().code == errc::invalid_argument);
  CHECK(wrong.error().param == "ids");
}

TEST_CASE("a chat is rendered from fields or from the message as it was sent") {
  auto state = state_with("{% for m in messages %}[{{ m.role }}:{{ m.content }}:{{ m.more }}]{% endfor %}"
                          "{% if add_generation_prompt %}>{% endif %}");
  const auto out = state.render(chat_of({R"({"role":"user","content":"Hi","more":[1,"x"]})"}).read());
  REQUIRE(out);
  CHECK(text_of(out->read().getText()) == "[system:Be<end>:][user:Hi:[1, 'x']]>");
  CHECK(out->read().getIds()[10] == 256);
  CHECK((*state.render(chat_of({}, true).read())).read().getIds().size() == 0);
}

TEST_CASE("a message whose JSON is none is refused") {
  auto state = state_with("x");
  for (const char* raw : {"{", "[]", "1", "\"text\"", "{\"role\":\"\xFF\"}"}) {
    const auto out = state.render(chat_of({raw}).read());
    REQUIRE_FALSE(out);
    CHECK(out.error().code == errc::invalid_argument);
    CHECK(out.error().param == "messages");
  }
}

TEST_CASE("what is larger than the limits is refused with the limit") {
  auto state = state_with("{{ messages[0].content * 3 }}", {.text_bytes = 10, .ids = 2, .messages = 1});
  CHECK(state.encode(text_of("12345678901", false).read()).error().code == errc::too_large);
  CHECK(state.encode(text_of("1234567890", false).read()).has_value());
  CHECK(state.decode(tokens_of({1, 2, 3}, false).read()).error().code == errc::too_large);
  CHECK(state.render(chat_of({"{}"}).read()).error().message == "there are more than 1 messages");
  CHECK(state.render(chat_of({}).read()).error().message == "the rendered chat has more than 10 bytes");
}

TEST_CASE("the status counts requests, failures and tokens") {
  auto state = state_with("{{ messages[0].content }}");
  CHECK(state.encode(text_of("abc", false).read()).has_value());
  CHECK(state.render(chat_of({}).read()).has_value()); // 'B' 'e' and the token <end>
  CHECK(state.decode(tokens_of({1, 2}, false).read()).has_value());
  CHECK_FALSE(state.decode(tokens_of({999}, false).read()).has_value());
  CHECK(gauge(state, "requests") == 4);
  CHECK(gauge(state, "failures") == 1);
  CHECK(gauge(state, "encoded_tokens") == 6);
  CHECK(gauge(state, "decoded_tokens") == 2);
}

TEST_CASE("after draining every request is refused as draining") {
  auto state = state_with("x");
  CHECK(state.status().read().getState() == "ready");
  state.drain();
  CHECK(state.status().read().getState() == "draining");
  CHECK(state.encode(text_of("a", false).read()).error().code == errc::draining);
}
