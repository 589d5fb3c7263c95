#include "services/daemon/loaded_model.hpp"

#include "kernels/models/model_facts.hpp"

#include <xxhash.h>

#include <fmt/format.h>

#include <chrono>
#include <future>
#include <string>

namespace godwit {

namespace {

/// One digest of several, each with its length so that no two lists read the same.
std::string joined_digest(std::initializer_list<std::string_view> parts) {
  std::string all;
  for (const auto part : parts)
    all += fmt::format("{}:{};", part.size(), part);
  const auto hash = XXH3_128bits(all.data(), all.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

/// When the file was written, in seconds since 1970; 0 if the system does not say.
std::int64_t written_at(const std::filesystem::path& path) {
  std::error_code ec;
  const auto time = std::filesystem::last_write_time(path, ec);
  if (ec)
    return 0;
  const auto since = std::chrono::file_clock::to_sys(time).time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since).count();
}

struct texts {
  std::shared_ptr<const godwit::tokenizer> tokenizer;
  std::shared_ptr<const godwit::chat_template> chat_template;
};

result<texts> load_texts(const gguf::file& file) {
  auto words = tokenizer::load(file);
  if (!words)
    return fail(words);
  auto chat = chat_template::load(file);
  if (!chat)
    return fail(chat);
  return texts{std::move(*words), std::move(*chat)};
}

result<model_facts> load_weights(loaded_model& into) {
  auto made = model::load(into.file, into.options);
  if (!made)
    return fail(made);
  into.model = std::move(*made);
  const auto& shape = into.model->shape();
  return model_facts{
    .fingerprint = into.model->fingerprint(), .context = shape.context, .vocabulary = shape.vocabulary};
}

} // namespace

result<loaded_model> load_model(const std::filesystem::path& path, unsigned threads, bool keep,
  std::function<void(const std::string&)> notice, bool weights, std::optional<kv_type> kv) {
  const auto failed = [&](const error& why) {
    return fail(
      why.code, fmt::format("the model {} cannot be loaded: {}", path.string(), why.message), "model");
  };
  loaded_model out;
  auto opened = gguf::file::open(path);
  if (!opened)
    return failed(opened.error());
  out.file = std::move(*opened);
  out.options.threads = threads;
  out.options.adapts_threads = true;
  out.options.kv = kv;
  if (keep)
    out.options.packed = path.string() + ".packed";
  out.options.notice = std::move(notice);

  auto reading = std::async(std::launch::async, [&file = *out.file] { return load_texts(file); });
  const auto facts = weights ? load_weights(out) : read_model_facts(*out.file, out.options);
  auto text = reading.get();
  if (!facts)
    return failed(facts.error());
  if (!text)
    return failed(text.error());
  out.tokenizer = std::move(text->tokenizer);
  out.chat_template = std::move(text->chat_template);
  if (out.tokenizer->text()->size() > facts->vocabulary)
    return failed({errc::corrupt, "its vocabulary has more tokens than its weights", {}, {}});

  out.card.id = path.stem().string();
  out.card.fingerprint =
    joined_digest({facts->fingerprint, out.tokenizer->digest(), out.chat_template->digest()});
  out.card.context = facts->context;
  out.card.created = written_at(path);
  out.card.text = out.tokenizer->text();
  return out;
}

} // namespace godwit
