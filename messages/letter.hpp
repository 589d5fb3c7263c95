#pragma once

#include "messages/result.hpp"

#include <capnp/any.h>
#include <capnp/message.h>
#include <capnp/schema.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace godwit {

/// Raw bytes that travel beside a letter without being copied into it: KV pages, embeddings.
using attachment = std::shared_ptr<const std::vector<std::byte>>;

/// What a letter from outside may at most be.
struct letter_limits {
  std::size_t bytes = std::size_t{32} << 20; ///< of the words; attachments are limited by the link
  int depth = 16;                            ///< nesting of structs and lists
};

namespace detail {

/// The words of one Cap'n Proto message: a one-segment table, then the words, aligned to 8 bytes. Whatever
/// made the body has checked every pointer, so reads take Cap'n Proto's unchecked path: no counters, hence
/// safe on any thread.
class letter_body {
 public:
  /// Copies the struct `root` points to, following every pointer once.
  static std::shared_ptr<const letter_body> copy(
    const capnp::AnyStruct::Reader& root, std::vector<attachment> attachments);

  letter_body(std::vector<std::uint64_t> words, std::vector<attachment> attachments)
    : words_(std::move(words)), attachments_(std::move(attachments)) {}

  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(words_)); }
  const std::vector<attachment>& attachments() const { return attachments_; }
  /// The root pointer, after the segment table's word.
  const capnp::word* root() const { return reinterpret_cast<const capnp::word*>(words_.data() + 1); }

 private:
  std::vector<std::uint64_t> words_;
  std::vector<attachment> attachments_;
};

/// Checks bytes from outside as a message of `schema`: size, framing, every pointer, every text, depth.
/// @returns `corrupt` or `too_large`
result<std::shared_ptr<const letter_body>> parse_letter(std::span<const std::byte> bytes,
  capnp::StructSchema schema, std::vector<attachment> attachments, letter_limits limits);

} // namespace detail

/// An immutable, reference-counted message of the Cap'n Proto struct `Schema`. Copying one copies a pointer;
/// any thread may read it. In a process the pointer is passed; between processes `bytes()` is what the socket
/// carries.
template <class Schema>
class letter {
 public:
  using schema = Schema;
  using reader = typename Schema::Reader;

  /// A letter in which every field has its default.
  letter() : letter(make([](typename Schema::Builder) {})) {}

  /// Makes a letter from a function that fills a `Schema::Builder`.
  template <class Fill>
  static letter make(Fill&& fill, std::vector<attachment> attachments = {}) {
    capnp::MallocMessageBuilder builder;
    fill(builder.initRoot<Schema>());
    return letter(
      detail::letter_body::copy(builder.getRoot<capnp::AnyStruct>().asReader(), std::move(attachments)));
  }

  /// Makes a letter from bytes of outside, of any alignment; everything in it is checked before it is
  /// returned.
  /// @returns `corrupt` or `too_large`
  static result<letter> parse(
    std::span<const std::byte> bytes, std::vector<attachment> attachments = {}, letter_limits limits = {}) {
    auto body = detail::parse_letter(bytes, capnp::Schema::from<Schema>(), std::move(attachments), limits);
    if (!body)
      return fail(body);
    return letter(std::move(*body));
  }

  /// Reads the fields. The reader is valid as long as a copy of this letter lives.
  reader read() const { return capnp::readMessageUnchecked<Schema>(body_->root()); }
  reader operator*() const { return read(); }

  /// The flat wire form: segment table and words.
  std::span<const std::byte> bytes() const { return body_->bytes(); }
  const std::vector<attachment>& attachments() const { return body_->attachments(); }

 private:
  explicit letter(std::shared_ptr<const detail::letter_body> body) : body_(std::move(body)) {}

  std::shared_ptr<const detail::letter_body> body_;
};

} // namespace godwit
