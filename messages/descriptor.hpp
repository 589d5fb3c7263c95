#pragma once

#include <unistd.h>

#include <utility>

namespace godwit {

/// Owns a file descriptor and closes it. Negative: none, as when open() failed (errno is kept).
class descriptor {
 public:
  explicit descriptor(int number = -1) : number_(number) {}
  descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~descriptor() { close(); }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;

  explicit operator bool() const { return number_ >= 0; }
  int operator*() const { return number_; }
  /// Before its time.
  void close() {
    if (number_ >= 0)
      ::close(std::exchange(number_, -1));
  }

 private:
  int number_;
};

} // namespace godwit
