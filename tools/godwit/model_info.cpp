#include "tools/godwit/model_info.hpp"

#include "actors/tokenizer/chat_template.hpp"
#include "actors/tokenizer/tokenizer.hpp"
#include "kernels/models/transformer_form.hpp"
#include "kernels/ops/dispatch.hpp"
#include "tools/godwit/output.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::cli {

using nlohmann::ordered_json;

namespace {

ordered_json text_of(const gguf::file& file, std::string_view key) {
  const auto text = file.string_value(key);
  return text ? ordered_json(*text) : ordered_json();
}

/// A number, or a list where a model has one for each layer.
ordered_json number_of(const gguf::file& file, std::string_view key) {
  if (const auto number = file.unsigned_value(key))
    return *number;
  const auto list = file.integers(key);
  return list ? ordered_json(*list) : ordered_json();
}

ordered_json tensors_of(const gguf::file& file) {
  auto types = ordered_json::object();
  for (const auto& tensor : file.tensors()) {
    auto& entry = types[std::string(to_string(tensor.type))];
    if (entry.is_null())
      entry = {{"count", 0U}, {"bytes", std::uint64_t{0}}};
    entry["count"] = entry["count"].get<std::uint64_t>() + 1;
    entry["bytes"] = entry["bytes"].get<std::uint64_t>() + tensor.data.size();
  }
  return types;
}

std::uint64_t parameters_of(const gguf::file& file) {
  std::uint64_t count = 0;
  for (const auto& tensor : file.tensors())
    count += tensor.rows() * tensor.columns();
  return count;
}

ordered_json tokenizer_of(const gguf::file& file) {
  ordered_json out{
    {"model", text_of(file, "tokenizer.ggml.model")}, {"pre", text_of(file, "tokenizer.ggml.pre")}};
  if (const auto words = tokenizer::load(file); words)
    out["digest"] = (*words)->digest();
  else
    out["error"] = words.error().message;
  return out;
}

ordered_json template_of(const gguf::file& file) {
  const auto chat = chat_template::load(file);
  if (!chat)
    return {{"exists", true}, {"error", chat.error().message}};
  ordered_json out{{"exists", (*chat)->exists()}};
  if ((*chat)->exists())
    out["digest"] = (*chat)->digest();
  return out;
}

/// What the transformer is made of, or why it cannot run.
ordered_json graph_of(const gguf::file& file) {
  const auto form = form_of(file);
  if (!form)
    return {{"error", form.error().message}};
  auto out = ordered_json::object();
  for (const auto& [name, fact] : form->facts())
    out[name] = fact;
  return out;
}

ordered_json dispatch_table() {
  auto table = ordered_json::array();
  for (const auto& line : ops::implementations())
    table.push_back({{"name", line.name}, {"description", line.description}, {"available", line.available},
      {"reason", line.reason}, {"chosen", line.chosen}});
  return table;
}

/// The digest of what can be used, or why it cannot.
std::string state_of(const ordered_json& part) {
  return part.contains("error") ? plain(part["error"]) : plain(member(part, "digest"));
}

} // namespace

ordered_json model_info(const gguf::file& file) {
  ordered_json info;
  info["architecture"] = text_of(file, "general.architecture");
  info["name"] = text_of(file, "general.name");
  info["parameters"] = parameters_of(file);
  const auto family = plain(info["architecture"]);
  info["context"] = number_of(file, family + ".context_length");
  const auto tokens = file.strings("tokenizer.ggml.tokens");
  info["vocabulary"] = tokens ? ordered_json(tokens->size()) : number_of(file, family + ".vocab_size");
  info["embedding"] = number_of(file, family + ".embedding_length");
  info["layers"] = number_of(file, family + ".block_count");
  info["heads"] = number_of(file, family + ".attention.head_count");
  info["kv_heads"] = number_of(file, family + ".attention.head_count_kv");
  info["graph"] = graph_of(file);
  info["bytes"] = file.size_bytes();
  info["tensors"] = tensors_of(file);
  info["tokenizer"] = tokenizer_of(file);
  info["chat_template"] = template_of(file);
  info["ops"] = dispatch_table();
  if (const auto chosen = ops::choose(); !chosen)
    info["ops_error"] = chosen.error().message;
  return info;
}

void print_model_info(const ordered_json& info) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, value] : info.items())
    if (!value.is_object() && !value.is_null() && name != "ops")
      rows.push_back({name, plain(value)});
  for (const auto& [name, fact] : info.at("graph").items())
    rows.push_back({"graph: " + name, plain(fact)});
  const auto& words = info.at("tokenizer");
  rows.push_back({"tokenizer", plain(words.at("model")) + " " + plain(words.at("pre")), state_of(words)});
  const auto& chat = info.at("chat_template");
  rows.push_back({"chat_template", chat.at("exists") == true ? "yes" : "no", state_of(chat)});
  print_table(rows);

  rows = {{"TENSORS", "COUNT", "BYTES"}};
  for (const auto& [type, entry] : info.at("tensors").items())
    rows.push_back({type, plain(entry.at("count")), plain(entry.at("bytes"))});
  fmt::print("\n");
  print_table(rows);

  rows = {{"OPS", "", "WHY", "FOR"}};
  for (const auto& line : info.at("ops"))
    rows.push_back({plain(line.at("name")),
      line.at("chosen") == true      ? "chosen"
      : line.at("available") == true ? "available"
                                     : "unavailable",
      plain(line.at("reason")), plain(line.at("description"))});
  fmt::print("\n");
  print_table(rows);
}

} // namespace godwit::cli
