#include "kernels/memory/page_pool.hpp"

#include "messages/check.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <sys/mman.h>

namespace godwit {
namespace {

/// Bytes a pool may reserve: half of what user space can address.
constexpr std::size_t most_bytes = std::size_t{1} << 46;

/// Address space for the pages; the system gives memory when a page is first touched.
class reservation {
 public:
  explicit reservation(std::size_t bytes)
    : bytes_(bytes), start_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    // Attention over a long context reads thousands of pages that lie apart. Advice only: without huge pages
    // everything works, with a miss of the translation for each of them.
    if (good())
      static_cast<void>(::madvise(start_, bytes_, MADV_HUGEPAGE));
  }
  ~reservation() {
    if (good())
      ::munmap(start_, bytes_);
  }
  reservation(const reservation&) = delete;
  reservation& operator=(const reservation&) = delete;

  bool good() const { return start_ != MAP_FAILED; }
  void* start() const { return start_; }

 private:
  std::size_t bytes_;
  void* start_;
};

/// References are counted by block; a page that is held more or less often than its block has a difference.
/// So whole blocks, the common case, cost one operation, and single pages can still come and go. A block is
/// free again when its last page is; until then its free pages go out one by one. The last one freed goes out
/// first, since its memory is resident and warm.
class mapped_pool final : public page_pool {
 public:
  mapped_pool(const kv_shape& shape, std::uint32_t blocks)
    : shape_(shape), memory_(shape.block_bytes() * blocks), blocks_(blocks),
      differences_(std::size_t{blocks} * shape.pages_per_block(), 0) {
    free_.reserve(blocks);
    for (auto block = blocks; block > 0; --block)
      free_.push_back(block - 1);
  }

  bool good() const { return memory_.good(); }

  const kv_shape& shape() const override { return shape_; }
  std::uint32_t capacity_blocks() const override { return static_cast<std::uint32_t>(blocks_.size()); }

  std::uint32_t free_blocks() const override {
    const std::lock_guard lock(mutex_);
    return static_cast<std::uint32_t>(free_.size());
  }

  std::uint64_t used_pages() const override {
    const std::lock_guard lock(mutex_);
    return used_pages_;
  }

  std::uint64_t loose_pages() const override {
    const std::lock_guard lock(mutex_);
    return (blocks_.size() - free_.size()) * shape_.pages_per_block() - used_pages_;
  }

  result<block_id> allocate_block() override {
    const std::lock_guard lock(mutex_);
    if (free_.empty())
      return fail(errc::resource_exhausted, "no free KV block: end sequences or give the pool more memory");
    const auto block = free_.back();
    free_.pop_back();
    // All else is as a free block has it.
    blocks_[block].references = 1;
    blocks_[block].held = shape_.pages_per_block();
    used_pages_ += shape_.pages_per_block();
    return block;
  }

  void retain_block(block_id block) override {
    const std::lock_guard lock(mutex_);
    retain(block);
  }

  void release_block(block_id block) override {
    const std::lock_guard lock(mutex_);
    release(block);
  }

  void retain_blocks(std::span<const block_id> blocks) override {
    const std::lock_guard lock(mutex_);
    for (const auto block : blocks)
      retain(block);
  }

  void release_blocks(std::span<const block_id> blocks) override {
    const std::lock_guard lock(mutex_);
    for (const auto block : blocks)
      release(block);
  }

  bool exclusive(block_id block) const override {
    const std::lock_guard lock(mutex_);
    const auto& state = state_of(block);
    if (state.uneven == 0)
      return state.references == 1;
    for (auto page = first_page(block); page < first_page(block + 1); ++page)
      if (count(state, page) > 1)
        return false;
    return true;
  }

  result<page_id> allocate_page() override {
    const std::lock_guard lock(mutex_);
    if (partial_.empty() && free_.empty())
      return fail(errc::resource_exhausted, "no free KV page: end sequences or give the pool more memory");
    if (partial_.empty()) {
      note_partial(free_.back());
      free_.pop_back();
    }
    const auto block = partial_.back();
    auto& state = blocks_[block];
    auto page = first_page(block) + state.search;
    while (count(state, page) != 0)
      ++page;
    change(static_cast<page_id>(page), 1);
    state.search = static_cast<std::uint32_t>(page - first_page(block)) + 1;
    ++state.held;
    ++used_pages_;
    if (state.held == shape_.pages_per_block())
      forget_partial(block);
    return static_cast<page_id>(page);
  }

  void retain_pages(std::span<const page_id> pages) override {
    const std::lock_guard lock(mutex_);
    for (const auto page : pages) {
      const auto references = count(state_of(block_of(page)), page);
      GODWIT_CHECK(references > 0 && references < most_references);
      change(page, 1);
    }
  }

  std::uint32_t release_pages(std::span<const page_id> pages) override {
    const std::lock_guard lock(mutex_);
    const auto before = used_pages_;
    for (const auto page : pages) {
      const auto block = block_of(page);
      auto& state = state_of(block);
      GODWIT_CHECK(count(state, page) > 0);
      change(page, -1);
      if (count(state, page) != 0)
        continue;
      state.search = std::min(state.search, static_cast<std::uint32_t>(page - first_page(block)));
      forget_pages(block, 1);
    }
    return static_cast<std::uint32_t>(before - used_pages_);
  }

  std::uint32_t references(page_id page) const override {
    const std::lock_guard lock(mutex_);
    return static_cast<std::uint32_t>(count(state_of(block_of(page)), page));
  }

  kv_element* data(page_id page) override { return start() + page * stride(); }
  const kv_element* data(page_id page) const override { return start() + page * stride(); }
  kv_element* base() override { return start(); }

 private:
  static constexpr std::uint32_t nowhere = ~std::uint32_t{0};

  struct block_state {
    std::uint32_t references = 0;    ///< to the block as a whole
    std::uint32_t uneven = 0;        ///< pages with a difference
    std::uint32_t held = 0;          ///< pages that somebody holds
    std::uint32_t search = 0;        ///< every page before this one is held, if some are free
    std::uint32_t partial = nowhere; ///< its place among the blocks of which some pages are free
  };

  // Half of the range, so that a count with its difference never overflows.
  static constexpr std::int64_t most_references = std::numeric_limits<std::int32_t>::max() / 2;

  std::size_t stride() const { return shape_.page_bytes() / sizeof(kv_element); }
  kv_element* start() const { return static_cast<kv_element*>(memory_.start()); }

  block_state& state_of(block_id block) {
    GODWIT_CHECK(block < blocks_.size());
    return blocks_[block];
  }
  const block_state& state_of(block_id block) const {
    GODWIT_CHECK(block < blocks_.size());
    return blocks_[block];
  }

  block_id block_of(page_id page) const { return page / shape_.pages_per_block(); }
  std::size_t first_page(std::size_t block) const { return block * shape_.pages_per_block(); }

  std::int64_t count(const block_state& state, std::size_t page) const {
    return std::int64_t{state.references} + differences_[page];
  }

  void retain(block_id block) {
    auto& state = state_of(block);
    // A page that nobody holds may be overwritten any time: a block with such a page cannot be shared whole.
    GODWIT_CHECK(state.held == shape_.pages_per_block());
    GODWIT_CHECK(state.references < most_references);
    ++state.references;
  }

  void release(block_id block) {
    auto& state = state_of(block);
    GODWIT_CHECK(state.references > 0 && state.held == shape_.pages_per_block());
    --state.references;
    if (state.uneven == 0) {
      if (state.references == 0)
        forget_pages(block, state.held);
      return;
    }
    std::uint32_t freed = 0;
    for (auto page = first_page(block); page < first_page(block + 1); ++page)
      freed += count(state, page) == 0 ? 1U : 0U;
    state.search = 0;
    forget_pages(block, freed);
  }

  void change(page_id page, std::int32_t by) {
    auto& state = blocks_[block_of(page)];
    auto& difference = differences_[page];
    state.uneven -= difference != 0 ? 1U : 0U;
    difference += by;
    state.uneven += difference != 0 ? 1U : 0U;
  }

  void note_partial(block_id block) {
    blocks_[block].partial = static_cast<std::uint32_t>(partial_.size());
    partial_.push_back(block);
  }

  void forget_partial(block_id block) {
    const auto place = std::exchange(blocks_[block].partial, nowhere);
    const auto last = partial_.back();
    partial_.pop_back();
    if (last == block)
      return;
    partial_[place] = last;
    blocks_[last].partial = place;
  }

  /// Notes that `pages` pages of the block have no reference any more.
  void forget_pages(block_id block, std::uint32_t pages) {
    auto& state = blocks_[block];
    used_pages_ -= pages;
    state.held -= pages;
    if (state.held > 0) {
      if (pages > 0 && state.partial == nowhere)
        note_partial(block);
      return;
    }
    if (state.partial != nowhere)
      forget_partial(block);
    if (state.uneven > 0)
      for (auto page = first_page(block); page < first_page(std::size_t{block} + 1); ++page)
        differences_[page] = 0;
    state = {};
    free_.push_back(block);
  }

  const kv_shape shape_;
  const reservation memory_;

  mutable std::mutex mutex_;
  std::vector<block_state> blocks_;
  std::vector<std::int32_t> differences_; // [page]: its references minus its block's
  std::vector<block_id> free_;
  std::vector<block_id> partial_; ///< with pages that are held and pages that are free
  std::uint64_t used_pages_ = 0;
};

} // namespace

result<std::unique_ptr<page_pool>> page_pool::create(const kv_shape& shape, std::uint32_t blocks) {
  if (shape.layers == 0 || shape.kv_heads == 0 || shape.head_dim == 0 || blocks == 0)
    return fail(errc::invalid_argument, "a KV pool needs layers, KV heads, a head size and blocks above 0");
  // Pages are numbered in 32 bits, with one number left over for the end.
  std::uint64_t pages = 0;
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(std::uint64_t{shape.layers} * shape.kv_heads, std::uint64_t{blocks}, &pages)
      || pages >= std::numeric_limits<page_id>::max()
      || __builtin_mul_overflow(pages, std::uint64_t{shape.page_bytes()}, &bytes) || bytes > most_bytes)
    return fail(errc::invalid_argument, "a KV pool of that size cannot be addressed: ask for fewer blocks");
  try {
    auto made = std::make_unique<mapped_pool>(shape, blocks);
    if (!made->good())
      return fail(errc::resource_exhausted,
        "the system refuses " + std::to_string(bytes) + " bytes of address space for the KV pool");
    return made;
  } catch (const std::bad_alloc&) {
    return fail(errc::resource_exhausted, "no memory for the tables of the KV pool");
  }
}

} // namespace godwit
