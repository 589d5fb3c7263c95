#include "kernels/ops/dispatch.hpp"

#include "kernels/ops/contract.hpp"
#include "kernels/ops/cpu/cpu_ops.hpp"
#include "kernels/ops/reference/reference_ops.hpp"

#include <algorithm>
#include <cstdlib>

namespace godwit::ops {

namespace {

std::vector<implementation> table() {
  std::vector<implementation> lines;
  for (const auto& target : cpu::compiled_targets()) {
    const bool here = cpu::runs_here(target);
    lines.push_back({.name = "cpu:" + std::string{target.name},
      .description = "repacked weights, 8-bit activations; " + std::string{target.description},
      .available = here,
      .reason = here ? "this processor has it" : "this processor lacks an instruction set"});
  }
  lines.push_back({.name = "reference",
    .description = "scalar, exact weights, sums in double: the definition, slow",
    .available = true,
    .reason = "runs everywhere"});
  return lines;
}

std::string choices(const std::vector<implementation>& lines) {
  std::string text = "cpu";
  for (const auto& line : lines) {
    text += ", " + line.name + (line.available ? "" : " (not on this processor)");
  }
  return text;
}

} // namespace

result<std::string> choose(std::string_view wanted) {
  if (wanted.empty()) {
    const char* const forced = std::getenv("GODWIT_OPS");
    wanted = forced == nullptr || *forced == '\0' ? "cpu" : forced;
  }
  const auto lines = table();
  const auto found = std::ranges::find_if(lines, [&](const implementation& line) {
    return line.name == wanted || (wanted == "cpu" && line.available && line.name.starts_with("cpu:"));
  });
  if (found == lines.end()) {
    return fail(errc::unsupported,
      "no ops called \"" + std::string{wanted} + "\"; GODWIT_OPS takes one of: " + choices(lines));
  }
  if (!found->available) {
    return fail(errc::unsupported, "the ops \"" + found->name + "\" cannot run here: " + found->reason
                                     + "; GODWIT_OPS takes one of: " + choices(lines));
  }
  return found->name;
}

std::vector<implementation> implementations(std::string_view wanted) {
  auto lines = table();
  if (const auto name = choose(wanted)) {
    for (auto& line : lines) {
      line.chosen = line.name == *name;
    }
  }
  return lines;
}

result<std::unique_ptr<op_set>> make_op_set(std::string_view name, const op_shape& shape, team& threads) {
  if (name == "reference") {
    return std::make_unique<reference::reference_ops>(shape, threads);
  }
  for (const auto& target : cpu::compiled_targets()) {
    if (name == "cpu:" + std::string{target.name}) {
      return cpu::cpu_ops::make(target, shape, threads);
    }
  }
  return fail(errc::unsupported, "no ops called \"" + std::string{name} + "\"");
}

std::string contract_of(std::string_view name) {
  if (name == "reference") {
    return "reference " + std::to_string(reference::contract_version);
  }
  return "cpu " + std::to_string(cpu::contract_version);
}

kv_type own_kv_type(std::string_view name) {
  return name == "reference" ? reference::reference_ops::own_kv : cpu::cpu_ops::own_kv;
}

} // namespace godwit::ops
