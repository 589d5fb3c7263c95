#include "services/api/session_requests.hpp"

#include "services/api/json_document.hpp"
#include "services/api/message_fields.hpp"

#include <nlohmann/json.hpp>
#include <xxhash.h>

#include <cstring>
#include <limits>

namespace godwit {

namespace {

constexpr std::size_t max_metadata_bytes = 16'384;
/// The cache takes no longer one.
constexpr std::int64_t longest_pin_s = 24 * 60 * 60;
constexpr std::int64_t ten_years_s = 315'360'000;
constexpr auto any_length = std::numeric_limits<std::size_t>::max();

result<nlohmann::json> parse_optional_body(std::string_view body) {
  return parse_json_document(body.empty() ? std::string_view("{}") : body);
}

/// What `read` takes of a document's fields; the first fault, or a field that it did not take, is refused.
/// @param read called with the fields, where their faults go, and what is read
template <class Request, class Read>
result<Request> read_document(const result<nlohmann::json>& document, Request out, const Read& read) {
  if (!document)
    return fail(document);
  problem found;
  field_reader fields(*document, "", found);
  read(fields, found, out);
  fields.finish();
  if (found)
    return found.failure();
  return out;
}

std::string read_metadata(field_reader& fields) {
  const auto* metadata = fields.object("metadata");
  if (metadata == nullptr)
    return "{}";
  auto text = metadata->dump();
  if (text.size() > max_metadata_bytes)
    fields.invalid("metadata", "must have at most " + std::to_string(max_metadata_bytes) + " bytes as JSON");
  return text;
}

busy_rule read_busy_rule(field_reader& fields) {
  const auto word = fields.word("on_busy", {"queue", "reject", "interrupt"});
  if (word == "reject")
    return busy_rule::reject;
  return word == "interrupt" ? busy_rule::interrupt : busy_rule::queue;
}

} // namespace

std::array<std::byte, 16> message_request::digest() const {
  // nlohmann's objects keep their keys in order, so this text is canonical.
  const auto canonical =
    nlohmann::json{
      {"content", content},
      {"on_disconnect", cancel_on_disconnect ? "cancel" : "continue"},
    }
      .dump();
  XXH128_canonical_t hash;
  XXH128_canonicalFromHash(&hash, XXH3_128bits(canonical.data(), canonical.size()));
  std::array<std::byte, 16> out;
  std::memcpy(out.data(), hash.digest, out.size());
  return out;
}

result<create_session_request> parse_create_session(
  std::string_view body, token_id vocabulary, const sampling_settings& unnamed) {
  return read_document(parse_optional_body(body), create_session_request{},
    [&](field_reader& fields, problem& found, create_session_request& out) {
      fields.unsupported("tools");
      out.model = fields.text("model", 256).value_or("");
      out.system = fields.text("system", any_length);
      out.sampling.settings = unnamed;
      if (const auto* sampling = fields.object("sampling")) {
        field_reader inner(*sampling, "sampling", found);
        out.sampling = read_sampling(inner, vocabulary, unnamed);
        inner.finish();
      }
      out.metadata = read_metadata(fields);
      out.on_busy = read_busy_rule(fields);
      out.ttl_s = static_cast<std::uint64_t>(fields.integer("ttl_s", 1, ten_years_s).value_or(0));
    });
}

result<message_request> parse_message(std::string_view body) {
  return read_document(parse_json_document(body), message_request{},
    [&](field_reader& fields, problem& found, message_request& out) {
      fields.unsupported("tool_results");
      fields.require("content");
      out.content = read_content(fields, "content", found).value_or("");
      out.stream = fields.boolean("stream").value_or(false);
      out.cancel_on_disconnect = fields.word("on_disconnect", {"continue", "cancel"}) == "cancel";
    });
}

result<cancel_request> parse_cancel(std::string_view body) {
  return read_document(
    parse_optional_body(body), cancel_request{}, [&](field_reader& fields, problem&, cancel_request& out) {
      out.turn = static_cast<std::uint32_t>(
        fields.integer("turn", 1, std::int64_t{std::numeric_limits<std::uint32_t>::max()}).value_or(0));
    });
}

result<fork_request> parse_fork(std::string_view body) {
  return read_document(
    parse_optional_body(body), fork_request{}, [&](field_reader& fields, problem&, fork_request& out) {
      if (const auto* at = fields.value("at"); at != nullptr && at->is_number())
        out.at = std::to_string(
          fields.integer("at", 1, std::int64_t{std::numeric_limits<std::uint32_t>::max()}).value_or(0));
      else if (const auto id = fields.text("at", 128)) {
        if (id->empty())
          fields.invalid("at", "must be an event's id or a turn's number");
        out.at = *id;
      }
    });
}

result<pin_request> parse_pin(std::string_view body) {
  return read_document(
    parse_json_document(body), pin_request{}, [&](field_reader& fields, problem&, pin_request& out) {
      fields.require("ttl_seconds");
      out.ttl_seconds =
        static_cast<std::uint32_t>(fields.integer("ttl_seconds", 1, longest_pin_s).value_or(0));
    });
}

result<trace_request> parse_trace(
  std::string_view body, std::uint32_t most_letters, std::uint32_t most_seconds) {
  return read_document(
    parse_optional_body(body), trace_request{}, [&](field_reader& fields, problem&, trace_request& out) {
      out.letters =
        static_cast<std::uint32_t>(fields.integer("letters", 1, most_letters).value_or(out.letters));
      out.seconds =
        static_cast<std::uint32_t>(fields.integer("seconds", 1, most_seconds).value_or(out.seconds));
    });
}

result<void> parse_nothing(std::string_view body) {
  const auto document = parse_optional_body(body);
  if (!document)
    return fail(document);
  problem found;
  field_reader fields(*document, "", found);
  fields.finish();
  if (found)
    return found.failure();
  return {};
}

} // namespace godwit
