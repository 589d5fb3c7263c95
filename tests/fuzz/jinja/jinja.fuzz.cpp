// Bytes from outside as a template: parsed or refused, rendered within the limits or refused, never harmful,
// and twice the same. A line of '~' separates the template from a JSON object for its variables.
#include "actors/jinja/program.hpp"
#include "actors/text/utf8.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

using json = nlohmann::ordered_json;

void require(bool holds) {
  if (!holds)
    std::abort();
}

const json& common_context() {
  // The variables that the seeds use.
  static const json made = json::parse(R"({
    "n": 7, "zero": 0, "neg": -3, "f": 2.5, "s": "Hello World", "e": "", "u": "Grüße, 世界 🙂", "t": true, "no": false,
    "nil": null, "l": [3, 1, 2], "w": ["b", "A", "c", "a"], "empty": [], "d": {"b": 1, "a": 2, "items": "shadow", "0": "zero"},
    "users": [{"name": "Ann", "age": 30, "on": true, "tags": ["x"]}, {"name": "bob", "age": 25, "on": false, "tags": []},
      {"name": "Cid", "age": 35, "on": true}],
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi <b>&'\"</b>"},
      {"role": "assistant", "content": "Hello\nthere", "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}]}],
    "nested": {"a": {"b": {"c": [1, {"d": "deep"}]}}},
    "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true, "tools": null, "documents": null
  })");
  return made;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace godwit;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  constexpr std::string_view separator = "\n~\n";
  const auto cut = input.find(separator);
  auto context = common_context();
  if (cut != std::string_view::npos) {
    const auto more = json::parse(input.substr(cut + separator.size()), nullptr, false);
    if (more.is_object())
      context.update(more);
  }
  // Small limits keep each run short; what they guard is the same as with the large ones.
  const jinja::limits most{.source = 1 << 16,
    .output = 1 << 18,
    .memory = 1 << 22,
    .steps = 200'000,
    .nesting = 100,
    .recursion = 400};
  const auto program = jinja::program::parse(input.substr(0, cut), most);
  if (!program) {
    require(!program.error().message.empty());
    return 0;
  }
  const auto text = (*program)->render(context, {});
  require(text == (*program)->render(context, {}));
  if (text)
    require(text->size() <= most.output && utf8::valid(*text));
  else
    require(!text.error().message.empty() && text.error().code != errc::internal);
  return 0;
}
