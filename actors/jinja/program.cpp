#include "actors/jinja/program.hpp"

#include "actors/jinja/interpreter.hpp"
#include "actors/jinja/json.hpp"

#include <nlohmann/json.hpp>

namespace godwit::jinja {

namespace {

tl::unexpected<error> to_error(const fault& why) {
  const auto place = why.line > 0 ? "line " + std::to_string(why.line) + " of the template: " : std::string();
  return fail(why.code, place + why.message);
}

template <class Json>
result<std::string> render_with(const syntax_tree& tree, const limits& most, const Json& context,
  std::chrono::system_clock::time_point now) {
  interpreter run(tree, most, now);
  for (const auto& [name, json] : context.items()) {
    auto made = from_json(run.memory(), json);
    if (!made)
      return to_error(made.error());
    run.define(name, *made);
  }
  auto out = run.run();
  if (!out)
    return to_error(out.error());
  return std::move(*out);
}

} // namespace

program::program(std::unique_ptr<const syntax_tree> tree, const limits& most)
  : tree_(std::move(tree)), most_(most) {}

program::~program() = default;

result<std::shared_ptr<const program>> program::parse(std::string_view source, const limits& most) {
  auto tree = jinja::parse(source, most);
  if (!tree)
    return to_error(tree.error());
  return std::shared_ptr<const program>(
    new program(std::make_unique<const syntax_tree>(std::move(*tree)), most));
}

result<std::string> program::render(
  const nlohmann::ordered_json& context, std::chrono::system_clock::time_point now) const {
  return render_with(*tree_, most_, context, now);
}

result<std::string> program::render(
  const nlohmann::json& context, std::chrono::system_clock::time_point now) const {
  return render_with(*tree_, most_, context, now);
}

} // namespace godwit::jinja
