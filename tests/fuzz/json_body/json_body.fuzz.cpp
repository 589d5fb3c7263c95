// Bytes as the body of every call that reads one. What is accepted keeps its promises; what is refused says
// so in words that are fit for a client, and so does the answer made of them.
#include "messages/check.hpp"
#include "services/api/chat_request.hpp"
#include "services/api/error_response.hpp"
#include "services/api/letters.hpp"
#include "services/api/session_requests.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

using namespace godwit;

constexpr token_id vocabulary = 50'000;

template <class T>
bool accepted(const result<T>& parsed) {
  if (parsed)
    return true;
  const auto& failure = parsed.error();
  GODWIT_CHECK(failure.code == errc::invalid_argument || failure.code == errc::unsupported
               || failure.code == errc::too_large);
  GODWIT_CHECK(!failure.message.empty() && failure.message.size() < 400);
  const auto visible = [](char c) { return c >= ' ' && c < '\x7f'; };
  GODWIT_CHECK(std::all_of(failure.message.begin(), failure.message.end(), visible));
  GODWIT_CHECK(std::all_of(failure.param.begin(), failure.param.end(), visible));
  const auto answer = nlohmann::json::parse(error_response(failure, std::chrono::seconds(1)).body);
  GODWIT_CHECK(answer["error"]["message"] == failure.message);
  return false;
}

void check(const sampling_choice& sampling) {
  const auto& settings = sampling.settings;
  GODWIT_CHECK(settings.temperature >= 0 && settings.temperature <= 2);
  GODWIT_CHECK(settings.top_p > 0 && settings.top_p <= 1);
  GODWIT_CHECK(settings.top_logprobs <= max_top_logprobs);
  GODWIT_CHECK(sampling.stop.size() <= max_stop_strings);
  for (const auto& text : sampling.stop)
    GODWIT_CHECK(!text.empty() && text.size() <= max_stop_bytes);
  for (const auto& [token, bias] : settings.bias)
    GODWIT_CHECK(token < vocabulary && bias >= -100 && bias <= 100);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);

  if (const auto chat = parse_chat_request(body, vocabulary, {}); accepted(chat)) {
    check(chat->sampling);
    GODWIT_CHECK(chat->choices >= 1 && chat->choices <= max_choices);
    GODWIT_CHECK(!chat->messages.empty());
    for (const auto& message : chat->messages)
      GODWIT_CHECK(message.role == "system" || message.role == "user" || message.role == "assistant");
    render_letter(chat->messages);
  }
  if (const auto session = parse_create_session(body, vocabulary, {}); accepted(session)) {
    check(session->sampling);
    GODWIT_CHECK(nlohmann::json::parse(session->metadata).is_object());
    settings_letter(*session, tenant_id("t"), "m", 1);
  }
  if (const auto message = parse_message(body); accepted(message)) {
    GODWIT_CHECK(message->content.find('\0') == std::string::npos);
    message_letter(*message, "key");
  }
  accepted(parse_cancel(body));
  accepted(parse_fork(body));
  return 0;
}
