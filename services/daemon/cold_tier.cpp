#include "services/daemon/cold_tier.hpp"

#include "services/coldstore/cold_options.hpp"
#include "services/coldstore/key_file.hpp"

#include <memory>
#include <string>
#include <utility>

namespace godwit {

namespace {

bool is_a_mistake(errc code) {
  return code == errc::conflict || code == errc::invalid_argument || code == errc::unsupported;
}

/// In place of a store that could not be opened: it holds nothing, and says that it takes nothing.
class refusing_store final : public cold_store {
 public:
  explicit refusing_store(std::uint64_t limit_bytes) {
    stats_.limit_bytes = limit_bytes;
    stats_.degraded = true;
  }

  std::size_t known(std::span<const block_identity>) const override { return 0; }
  std::size_t read(std::span<const block_identity>, std::span<const std::span<std::byte>>) override {
    return 0;
  }
  result<void> write(std::span<const cold_block>) override {
    return fail(errc::io, "the cold store could not be opened when the node started");
  }
  cold_stats stats() const override { return stats_; }

 private:
  cold_stats stats_;
};

} // namespace

result<cold_tier> open_cold_tier(const config& settings, const std::filesystem::path& folder,
  const cache_scope& scope, const std::shared_ptr<logger>& out) {
  if (settings.cache_cold_bytes == 0)
    return cold_tier{};
  cold_options options;
  options.folder = settings.cache_cold_dir.empty() ? folder : settings.cache_cold_dir;
  options.limit_bytes = settings.cache_cold_bytes;
  options.scope = scope;
  options.warn = [out](std::string_view line) { out->warn("cold cache", {{"why", line}}); };
  const auto without = [&](const error& why) -> result<cold_tier> {
    const auto words = "the cold cache in " + options.folder.string() + " cannot be used: " + why.message;
    if (is_a_mistake(why.code))
      return fail(why.code, words, "cache_cold_dir");
    out->warn("cold cache", {{"why", words + "; the node serves without it until it is started again"}});
    return cold_tier{std::make_shared<refusing_store>(options.limit_bytes), {}};
  };
  auto key = cold_identity_key(options.folder);
  if (!key)
    return without(key.error());
  auto store = open_cold_store(options);
  if (!store)
    return without(store.error());
  return cold_tier{std::move(*store), *key};
}

} // namespace godwit
