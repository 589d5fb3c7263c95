#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace godwit::ops::cpu {

/// Zeroed bytes at a 64-byte boundary; large ones at a 2 MiB boundary, in huge pages where the system has
/// them, so that reading weights in order costs few translations.
class aligned_buffer {
 public:
  aligned_buffer() = default;
  explicit aligned_buffer(std::size_t bytes);

  std::byte* data() { return bytes_.get(); }
  const std::byte* data() const { return bytes_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct release {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<std::byte[], release> bytes_;
  std::size_t size_ = 0;
};

/// A fixed number of elements in an aligned buffer.
template <class T>
class aligned_array {
 public:
  aligned_array() = default;
  explicit aligned_array(std::size_t count) : buffer_{count * sizeof(T)} {}

  T* data() { return reinterpret_cast<T*>(buffer_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(buffer_.data()); }
  std::size_t bytes() const { return buffer_.size(); }

 private:
  aligned_buffer buffer_;
};

} // namespace godwit::ops::cpu
