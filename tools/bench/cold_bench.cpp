#include "tools/bench/cold_bench.hpp"

#include "kernels/gguf/file.hpp"
#include "kernels/memory/page_pool.hpp"
#include "kernels/memory/sequence.hpp"
#include "kernels/models/model.hpp"
#include "messages/check.hpp"
#include "messages/descriptor.hpp"
#include "services/coldstore/cold_options.hpp"
#include "tools/bench/measuring.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace godwit::bench {

namespace {

namespace fs = std::filesystem;
using clock = std::chrono::steady_clock;
using bytes = std::vector<std::byte>;

/// A folder that goes with its content.
class own_folder {
 public:
  explicit own_folder(const fs::path& parent)
    : path_(parent / ("bench-cold-" + std::to_string(::getpid()))) {}
  ~own_folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  own_folder(const own_folder&) = delete;
  own_folder& operator=(const own_folder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Pages to write, and the shape that they have.
struct material {
  kv_shape shape;
  std::vector<bytes> blocks;
};

/// As many blocks as a prompt of 1,024 tokens fills, in the shape of SmolLM2-135M.
material noise() {
  material made{{30, 3, 64, kv_type::f16}, {}};
  std::uint64_t state = 88172645463325252U;
  for (int i = 0; i < 64; ++i) {
    bytes block(made.shape.block_bytes());
    for (auto& one : block) {
      state ^= state << 13U; // xorshift64, G. Marsaglia 2003
      state ^= state >> 7U;
      state ^= state << 17U;
      one = static_cast<std::byte>(state);
    }
    made.blocks.push_back(std::move(block));
  }
  return made;
}

result<material> pages_of(const fs::path& name) {
  auto file = gguf::file::open(name);
  if (!file)
    return fail(file);
  auto runs = model::load(std::move(*file), {});
  if (!runs)
    return fail(runs);
  const auto& shape = (*runs)->shape();
  const auto tokens = std::min<std::uint32_t>(1024, shape.context);
  auto pool = page_pool::create(shape.kv, blocks_for(tokens) + 1);
  if (!pool)
    return fail(pool);
  material made{shape.kv, {}};
  sequence target(**pool);
  std::vector<float> logits(shape.vocabulary);
  if (auto read = read_prompt(**runs, target, any_tokens(tokens, shape.vocabulary), logits); !read)
    return fail(read);
  for (const auto block : target.blocks().first(tokens / page_tokens)) {
    const auto* first = reinterpret_cast<const std::byte*>((*pool)->data((*pool)->page(block, 0, 0)));
    made.blocks.emplace_back(first, first + shape.kv.block_bytes());
  }
  return made;
}

/// Blocks of one text, or of texts of so many blocks, that stand behind each other.
std::vector<cold_block> chain_of(const material& from, std::uint64_t count, std::uint64_t text_blocks) {
  cold_options any;
  any.scope.shape = from.shape;
  const block_hasher hasher(identity_key::derive({}), any.scope);
  std::vector<cold_block> made;
  std::vector<token_id> tokens(page_tokens);
  for (std::uint64_t i = 0; i < count; ++i) {
    cold_block block;
    block.depth = static_cast<std::uint32_t>(i % text_blocks);
    block.parent = block.depth == 0 ? hasher.root("bench") : made.back().identity;
    tokens[0] = static_cast<token_id>(i);
    block.identity = hasher.next(block.parent, tokens);
    block.tenant = "bench";
    block.pages = from.blocks[i % from.blocks.size()];
    made.push_back(block);
  }
  return made;
}

cold_options options_for(const material& from, const fs::path& folder, std::uint64_t limit, bool compress) {
  cold_options made;
  made.folder = folder;
  made.limit_bytes = limit;
  made.scope.shape = from.shape;
  made.compress = compress;
  made.patience = std::chrono::minutes(2);
  return made;
}

/// What the process gave to write() so far, in bytes.
std::uint64_t given_to_write() {
  std::ifstream counters("/proc/self/io");
  for (std::string name; counters >> name;) {
    std::uint64_t value = 0;
    counters >> value;
    if (name == "wchar:")
      return value;
  }
  return 0;
}

std::uint64_t bytes_in(const fs::path& folder) {
  std::uint64_t sum = 0;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code))
    if (const auto size = entry.file_size(code); !code)
      sum += size;
  return sum;
}

/// Has the system forget what it has of a folder's files in memory.
void forget(const fs::path& folder) {
  ::sync();
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code))
    if (const descriptor file(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC)); file)
      ::posix_fadvise(*file, 0, 0, POSIX_FADV_DONTNEED);
}

/// A plain file. @returns bytes a second
result<double> write_file(
  const fs::path& name, std::span<const cold_block> blocks, std::uint32_t batch, bool sync_each) {
  const auto start = clock::now();
  descriptor file(::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  bool good = bool(file);
  double sum = 0;
  for (std::size_t i = 0; good && i < blocks.size(); ++i) {
    const auto pages = blocks[i].pages;
    good = ::write(*file, pages.data(), pages.size()) == static_cast<ssize_t>(pages.size());
    if (sync_each && (i + 1) % batch == 0)
      good = good && ::fdatasync(*file) == 0;
    sum += static_cast<double>(pages.size());
  }
  good = good && ::fdatasync(*file) == 0;
  file.close();
  if (!good)
    return fail(errc::io, "the disk refused a write");
  return sum / seconds_since(start);
}

result<double> read_file(const fs::path& name, bytes& into) {
  const auto start = clock::now();
  descriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  double sum = 0;
  ssize_t got = file ? 1 : -1;
  while (got > 0) {
    got = ::read(*file, into.data(), into.size());
    sum += got > 0 ? static_cast<double>(got) : 0;
  }
  file.close();
  if (got < 0)
    return fail(errc::io, "the disk refused a read");
  return sum / seconds_since(start);
}

/// Reads a chain in batches; what is read must be right. @returns bytes a second
result<double> read_store(
  cold_store& store, std::span<const cold_block> blocks, std::uint32_t batch, std::vector<bytes>& into) {
  std::vector<block_identity> names;
  for (const auto& block : blocks)
    names.push_back(block.identity);
  double sum = 0;
  double seconds = 0;
  for (std::size_t i = 0; i < names.size(); i += batch) {
    const auto count = std::min<std::size_t>(batch, names.size() - i);
    std::vector<std::span<std::byte>> places(into.begin(), into.begin() + static_cast<std::ptrdiff_t>(count));
    const auto start = clock::now();
    const auto got = store.read(std::span(names).subspan(i, count), places);
    seconds += seconds_since(start);
    if (got != count)
      return fail(errc::io, "a block that was written cannot be read");
    for (std::size_t k = 0; k < count; ++k) {
      GODWIT_CHECK(std::ranges::equal(into[k], blocks[i + k].pages));
      sum += static_cast<double>(into[k].size());
    }
  }
  return sum / seconds;
}

result<void> write_store(cold_store& store, std::span<const cold_block> blocks, std::uint32_t batch) {
  for (; !blocks.empty(); blocks = blocks.subspan(std::min<std::size_t>(batch, blocks.size())))
    if (auto written = store.write(blocks.first(std::min<std::size_t>(batch, blocks.size()))); !written)
      return written;
  return {};
}

/// One round of a store that has room for all, beside plain files.
result<cold_rates> round(const material& from, const cold_settings& settings, const fs::path& folder) {
  cold_rates out;
  out.block_bytes = from.shape.block_bytes();
  out.blocks = std::max<std::uint64_t>((std::uint64_t{settings.megabytes} << 20U) / out.block_bytes, 8);
  const auto blocks = chain_of(from, out.blocks, out.blocks);
  const auto size = static_cast<double>(out.blocks * out.block_bytes);
  const auto place = folder / "store";
  const auto file = folder / "file";
  std::vector<bytes> into(settings.batch, bytes(out.block_bytes));

  for (const bool each : {false, true}) {
    const auto rate = write_file(file, blocks, settings.batch, each);
    if (!rate)
      return fail(rate);
    (each ? out.file_write_synced : out.file_write) = *rate;
  }
  {
    auto store =
      open_cold_store(options_for(from, place, 2 * static_cast<std::uint64_t>(size), settings.compress));
    if (!store)
      return fail(store);
    const auto before = given_to_write();
    const auto start = clock::now();
    if (auto written = write_store(**store, blocks, settings.batch); !written)
      return fail(written);
    out.write = size / seconds_since(start);
    out.write_amplification = static_cast<double>(given_to_write() - before) / size;
    out.space_amplification = static_cast<double>(bytes_in(place)) / size;
  }
  auto store =
    open_cold_store(options_for(from, place, 2 * static_cast<std::uint64_t>(size), settings.compress));
  if (!store)
    return fail(store);
  for (const bool warm : {false, true}) {
    if (!warm)
      forget(folder);
    const auto plain = read_file(file, into[0]);
    if (!plain)
      return fail(plain);
    if (!warm)
      forget(place);
    else if (auto once = read_store(**store, blocks, settings.batch, into); !once)
      return fail(once);
    const auto rate = read_store(**store, blocks, settings.batch, into);
    if (!rate)
      return fail(rate);
    (warm ? out.read_warm : out.read) = *rate;
    (warm ? out.file_read_warm : out.file_read) = *plain;
  }
  return out;
}

/// A store that is full: texts of 32 blocks, of which every eighth is read again and again.
result<void> fill(
  const material& from, const cold_settings& settings, const fs::path& folder, cold_rates& out) {
  constexpr std::uint64_t text = 32;
  const auto limit = out.blocks * (out.block_bytes + 200);
  const auto blocks = chain_of(from, 3 * out.blocks / text * text, text);
  auto store = open_cold_store(options_for(from, folder / "full", limit, settings.compress));
  if (!store)
    return fail(store);
  std::vector<bytes> into(text, bytes(out.block_bytes));
  const auto before = given_to_write();
  double seconds = 0;
  std::uint64_t most = 0;
  for (std::uint64_t i = 0; i < blocks.size(); i += text) {
    const auto start = clock::now();
    if (auto written = write_store(**store, std::span(blocks).subspan(i, text), settings.batch); !written)
      return written;
    seconds += seconds_since(start);
    if (const auto state = (*store)->stats(); state.evicted != 0)
      most = std::max(most, bytes_in(folder / "full") * 1000 / std::max<std::uint64_t>(state.bytes, 1));
    // A text that is worth keeping is asked for from then on.
    for (std::uint64_t old = 0; old <= i; old += 8 * text)
      if ((i / text) % 4 == (old / (8 * text)) % 4)
        static_cast<void>(read_store(**store, std::span(blocks).subspan(old, text), text, into));
  }
  const auto size = static_cast<double>(blocks.size() * out.block_bytes);
  out.full_write = size / seconds;
  out.full_write_amplification = static_cast<double>(given_to_write() - before) / size;
  out.full_space_amplification = static_cast<double>(most) / 1000;
  out.evicted = (*store)->stats().evicted;
  std::uint64_t kept[2] = {0, 0};
  std::uint64_t all[2] = {0, 0};
  for (std::uint64_t i = 0; i < blocks.size(); i += text) {
    std::vector<block_identity> names;
    for (const auto& block : std::span(blocks).subspan(i, text))
      names.push_back(block.identity);
    const auto kind = (i / text) % 8 == 0 ? 1U : 0U;
    kept[kind] += (*store)->known(names);
    all[kind] += text;
  }
  out.worthy_kept = static_cast<double>(kept[1]) / static_cast<double>(std::max<std::uint64_t>(all[1], 1));
  out.unworthy_kept = static_cast<double>(kept[0]) / static_cast<double>(std::max<std::uint64_t>(all[0], 1));
  return {};
}

} // namespace

result<cold_rates> cold(const cold_settings& settings) {
  if (settings.rounds == 0 || settings.batch == 0 || settings.megabytes == 0)
    return fail(errc::invalid_argument, "rounds, megabytes and blocks of a batch must be positive");
  auto from = settings.model.empty() ? result<material>(noise()) : pages_of(settings.model);
  if (!from)
    return fail(from);
  const own_folder folder(settings.folder);
  std::vector<cold_rates> rounds;
  for (std::uint32_t i = 0; i < settings.rounds; ++i) {
    std::error_code code;
    fs::remove_all(folder.path(), code);
    fs::create_directories(folder.path(), code);
    if (code)
      return fail(errc::io, "cannot make a folder: " + code.message());
    auto one = round(*from, settings, folder.path());
    if (!one)
      return fail(one);
    rounds.push_back(*one);
  }
  auto out = rounds.back();
  for (const auto member : {&cold_rates::write, &cold_rates::file_write, &cold_rates::file_write_synced,
         &cold_rates::read, &cold_rates::file_read, &cold_rates::read_warm, &cold_rates::file_read_warm,
         &cold_rates::write_amplification, &cold_rates::space_amplification}) {
    std::vector<double> values;
    for (const auto& each : rounds)
      values.push_back(each.*member);
    out.*member = median(std::move(values));
  }
  if (auto filled = fill(*from, settings, folder.path(), out); !filled)
    return fail(filled);
  return out;
}

} // namespace godwit::bench
