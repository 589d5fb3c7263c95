// Renders templates for the comparison with Jinja2: reads a JSON array of {"source", "context", "now"} and
// writes one of
// {"text"} or {"error", "code"}.
#include "actors/jinja/program.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <iostream>

namespace {

using json = nlohmann::ordered_json;

json render(const json& one) {
  const auto program = godwit::jinja::program::parse(one["source"].get<std::string>());
  if (!program)
    return {{"error", program.error().message}, {"code", static_cast<int>(program.error().code)}};
  const std::chrono::system_clock::time_point now(std::chrono::seconds(one["now"].get<std::int64_t>()));
  const auto text = (*program)->render(one["context"], now);
  if (!text)
    return {{"error", text.error().message}, {"code", static_cast<int>(text.error().code)}};
  return {{"text", *text}};
}

} // namespace

int main() {
  auto out = json::array();
  for (const auto& one : json::parse(std::cin))
    out.push_back(render(one));
  std::cout << out.dump() << '\n';
  return 0;
}
