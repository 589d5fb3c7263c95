#pragma once

#include "kernels/memory/kv_layout.hpp"
#include "messages/result.hpp"

#include <memory>
#include <span>

namespace godwit {

/// All KV pages of one device. Memory is reserved at once and becomes resident as pages are first used.
/// Reference counts are per page, so that one head of a sequence can give up pages that its neighbours keep;
/// blocks are the common case and cost one operation. Thread-safe: a cache may hold references while a device
/// computes.
class page_pool {
 public:
  /// @param blocks capacity; the pool holds `blocks * shape.pages_per_block()` pages
  /// @returns `resource_exhausted` when the address space is refused, `invalid_argument` for an empty or huge
  /// shape
  static result<std::unique_ptr<page_pool>> create(const kv_shape& shape, std::uint32_t blocks);

  virtual ~page_pool() = default;

  virtual const kv_shape& shape() const = 0;
  virtual std::uint32_t capacity_blocks() const = 0;
  /// Blocks of which every page is free. Pages of others may be free too, for allocate_page().
  virtual std::uint32_t free_blocks() const = 0;
  virtual std::uint64_t used_pages() const = 0;
  /// Free pages of blocks of which others are held: single pages can have them, whole blocks cannot.
  virtual std::uint64_t loose_pages() const = 0;

  /// A block with one reference on each of its pages; contents are undefined. @returns `resource_exhausted`
  virtual result<block_id> allocate_block() = 0;
  virtual void retain_block(block_id block) = 0;
  virtual void release_block(block_id block) = 0;
  /// The same for many at once: a prefix has hundreds.
  virtual void retain_blocks(std::span<const block_id> blocks) = 0;
  virtual void release_blocks(std::span<const block_id> blocks) = 0;
  /// True if nobody else holds any page of the block, so that it may be written in place.
  virtual bool exclusive(block_id block) const = 0;

  /// A page with one reference, of a block of which others have pages already if there is such. It may be of
  /// any layer and head. @returns `resource_exhausted`
  virtual result<page_id> allocate_page() = 0;
  virtual void retain_pages(std::span<const page_id> pages) = 0;
  /// @returns how many of them nobody holds any more
  virtual std::uint32_t release_pages(std::span<const page_id> pages) = 0;
  void retain_page(page_id page) { retain_pages({&page, 1}); }
  bool release_page(page_id page) { return release_pages({&page, 1}) == 1; }
  virtual std::uint32_t references(page_id page) const = 0;

  /// The page of a layer and KV head in a block.
  page_id page(block_id block, std::uint32_t layer, std::uint32_t head) const {
    return block * shape().pages_per_block() + layer * shape().kv_heads + head;
  }

  /// Start of a page, laid out as kv_places says for the shape's type. 64-byte aligned.
  virtual kv_element* data(page_id page) = 0;
  virtual const kv_element* data(page_id page) const = 0;
  /// Start of page 0; page p starts `p * shape().page_bytes()` bytes after it.
  virtual kv_element* base() = 0;
};

} // namespace godwit
