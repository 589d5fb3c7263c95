#include "services/api/json_document.hpp"

#include "services/api/field_reader.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace godwit {

namespace {

using nlohmann::json;

/// Builds the document from the parser's events, which come without recursion, so that depth costs no stack.
class document_builder final : public nlohmann::json_sax<json> {
 public:
  explicit document_builder(const json_limits& limits) : limits_(limits) {}

  json& document() { return root_; }
  const std::optional<error>& failure() const { return failure_; }

  bool null() override { return add(nullptr) != nullptr; }
  bool boolean(bool value) override { return add(value) != nullptr; }
  bool number_integer(number_integer_t value) override { return add(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return add(value) != nullptr; }
  bool number_float(number_float_t value, const string_t&) override { return add(value) != nullptr; }
  bool binary(binary_t&) override { return false; }

  bool string(string_t& value) override { return without_nul(value) && add(std::move(value)) != nullptr; }

  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (!without_nul(name))
      return false;
    auto& object = *open_.back();
    if (object.contains(name))
      return refuse(
        fmt::format("the body has the key \"{0}\" twice in one object", shown_key(name)), shown_key(name));
    slot_ = &object[name];
    return true;
  }

  // The exception's text quotes the body, so only the place is kept.
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return refuse(fmt::format("the body is not valid JSON in UTF-8: the fault is at byte {}", position), {});
  }

 private:
  bool refuse(std::string message, std::string param) {
    if (!failure_)
      failure_ = error{errc::invalid_argument, std::move(message), std::move(param), "invalid_json"};
    return false;
  }

  bool without_nul(const std::string& text) {
    return text.find('\0') == std::string::npos
           || refuse("the body has the character U+0000 in a text: leave it out", {});
  }

  /// Puts a value where the parser stands. @returns nothing when there are too many
  template <class Value>
  json* add(Value&& value) {
    if (++values_ > limits_.values) {
      refuse(fmt::format("the body has more than {} values", limits_.values), {});
      return nullptr;
    }
    if (open_.empty()) {
      root_ = std::forward<Value>(value);
      return &root_;
    }
    auto& parent = *open_.back();
    if (parent.is_array()) {
      parent.emplace_back(std::forward<Value>(value));
      return &parent.back();
    }
    *slot_ = std::forward<Value>(value);
    return slot_;
  }

  bool open(json container) {
    if (open_.size() >= limits_.depth)
      return refuse(fmt::format("the body is nested deeper than {} levels", limits_.depth), {});
    auto* place = add(std::move(container));
    if (place == nullptr)
      return false;
    // A parent does not grow while a child is open, so the pointer stays valid.
    open_.push_back(place);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  json_limits limits_;
  json root_;
  std::vector<json*> open_; ///< containers around the parser's place, outermost first
  json* slot_ = nullptr;    ///< value of the key read last
  std::size_t values_ = 0;
  std::optional<error> failure_;
};

} // namespace

result<nlohmann::json> parse_json_document(std::string_view body, const json_limits& limits) {
  if (body.size() > limits.bytes)
    return fail(errc::too_large, fmt::format("the body is over the limit of {} bytes", limits.bytes), {},
      "body_too_large");
  document_builder builder(limits);
  const auto complete = json::sax_parse(body.begin(), body.end(), &builder);
  if (builder.failure())
    return tl::unexpected<error>(*builder.failure());
  if (!complete)
    return fail(errc::invalid_argument, "the body is not valid JSON", {}, "invalid_json");
  return std::move(builder.document());
}

} // namespace godwit
