#include "tools/godwit/model_commands.hpp"

#include "actors/tokenizer/chat_template.hpp"
#include "actors/tokenizer/tokenizer.hpp"
#include "kernels/gguf/file.hpp"
#include "tools/godwit/model_info.hpp"
#include "tools/godwit/token_list.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace godwit::cli {

using nlohmann::ordered_json;

namespace {

/// Writes bytes as they are.
int print_bytes(const settings& how, std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size() || std::fflush(stdout) != 0)
    return report({errc::io, "standard output cannot be written", {}, {}}, how.json);
  return exit_ok;
}

result<std::shared_ptr<const tokenizer>> load_tokenizer(const std::filesystem::path& path) {
  const auto file = gguf::file::open(path);
  return file ? tokenizer::load(**file) : fail(file);
}

} // namespace

int show_model(const settings& how, const std::filesystem::path& model) {
  const auto file = gguf::file::open(model);
  if (!file)
    return report(file.error(), how.json);
  const auto info = model_info(**file);
  if (how.json)
    print_json(info);
  else
    print_model_info(info);
  return exit_ok;
}

int tokenize(const settings& how, const std::filesystem::path& model, std::string_view input, bool special) {
  const auto words = load_tokenizer(model);
  if (!words)
    return report(words.error(), how.json);
  const auto ids = (*words)->encode(input, special);
  return print_bytes(
    how, how.json ? ordered_json(ids).dump() + "\n" : fmt::format("{}\n", fmt::join(ids, " ")));
}

int detokenize(const settings& how, const std::filesystem::path& model, std::string_view input) {
  const auto words = load_tokenizer(model);
  if (!words)
    return report(words.error(), how.json);
  const auto ids = read_token_list(input, (*words)->text()->size());
  if (!ids)
    return report(ids.error(), how.json);
  return print_bytes(how, (*words)->decode(*ids, true));
}

int render(const settings& how, const std::filesystem::path& model, std::string_view input, bool answer) {
  const auto file = gguf::file::open(model);
  if (!file)
    return report(file.error(), how.json);
  const auto chat = chat_template::load(**file);
  if (!chat)
    return report(chat.error(), how.json);
  const auto messages = ordered_json::parse(input, nullptr, false);
  if (!messages.is_array())
    return report({errc::invalid_argument, "standard input is no JSON array of messages", {}, {}}, how.json);
  const auto prompt = (*chat)->render(messages, answer);
  if (!prompt)
    return report(prompt.error(), how.json);
  return print_bytes(how, *prompt);
}

} // namespace godwit::cli
