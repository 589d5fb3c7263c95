#include "kernels/gguf/writer.hpp"

#include <algorithm>
#include <iterator>

namespace godwit::gguf {
namespace {

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  // Byte by byte: g++ 12 sees an overflow in an insertion of the range that is not there.
  std::ranges::copy(bytes, std::back_inserter(to));
}

template <class T>
void append_number(std::vector<std::byte>& to, T number) {
  append(to, std::as_bytes(std::span(&number, 1)));
}

void append_string(std::vector<std::byte>& to, std::string_view text) {
  append_number(to, static_cast<std::uint64_t>(text.size()));
  append(to, std::as_bytes(std::span(text)));
}

template <class T>
std::vector<std::byte> bytes_of(T number) {
  std::vector<std::byte> bytes;
  append_number(bytes, number);
  return bytes;
}

std::vector<std::byte> array_head(std::uint32_t type, std::size_t count) {
  std::vector<std::byte> bytes;
  append_number(bytes, type);
  append_number(bytes, static_cast<std::uint64_t>(count));
  return bytes;
}

template <class T>
std::vector<std::byte> array_of(std::uint32_t type, std::span<const T> items) {
  auto bytes = array_head(type, items.size());
  append(bytes, std::as_bytes(items));
  return bytes;
}

void pad(std::vector<std::byte>& bytes, std::size_t alignment) {
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
}

// Type numbers of metadata values, from the format's description.
constexpr std::uint32_t array_type = 9;

} // namespace

writer::writer(std::uint32_t version, std::uint32_t alignment) : version_(version), alignment_(alignment) {
  if (alignment != 32)
    add("general.alignment", alignment);
}

writer& writer::add_raw(std::string_view key, std::uint32_t type, std::span<const std::byte> bytes) {
  values_.push_back({std::string(key), type, {}, {bytes.begin(), bytes.end()}});
  return *this;
}

writer& writer::add(std::string_view key, std::uint8_t number) {
  return add_raw(key, 0, bytes_of(number));
}
writer& writer::add(std::string_view key, std::int8_t number) {
  return add_raw(key, 1, bytes_of(number));
}
writer& writer::add(std::string_view key, std::uint16_t number) {
  return add_raw(key, 2, bytes_of(number));
}
writer& writer::add(std::string_view key, std::int16_t number) {
  return add_raw(key, 3, bytes_of(number));
}
writer& writer::add(std::string_view key, std::uint32_t number) {
  return add_raw(key, 4, bytes_of(number));
}
writer& writer::add(std::string_view key, std::int32_t number) {
  return add_raw(key, 5, bytes_of(number));
}
writer& writer::add(std::string_view key, float number) {
  return add_raw(key, 6, bytes_of(number));
}
writer& writer::add(std::string_view key, bool flag) {
  return add_raw(key, 7, bytes_of(static_cast<std::uint8_t>(flag ? 1 : 0)));
}
writer& writer::add(std::string_view key, std::string_view text) {
  std::vector<std::byte> bytes;
  append_string(bytes, text);
  return add_raw(key, 8, bytes);
}
writer& writer::add(std::string_view key, std::uint64_t number) {
  return add_raw(key, 10, bytes_of(number));
}
writer& writer::add(std::string_view key, std::int64_t number) {
  return add_raw(key, 11, bytes_of(number));
}
writer& writer::add(std::string_view key, double number) {
  return add_raw(key, 12, bytes_of(number));
}

writer& writer::add_array(std::string_view key, std::span<const std::string> items) {
  auto bytes = array_head(8, items.size());
  for (const auto& item : items)
    append_string(bytes, item);
  return add_raw(key, array_type, bytes);
}

writer& writer::add_array(std::string_view key, std::span<const std::int32_t> items) {
  return add_raw(key, array_type, array_of(5, items));
}
writer& writer::add_array(std::string_view key, std::span<const std::uint32_t> items) {
  return add_raw(key, array_type, array_of(4, items));
}
writer& writer::add_array(std::string_view key, std::span<const float> items) {
  return add_raw(key, array_type, array_of(6, items));
}

writer& writer::add_tensor(std::string_view name, tensor_type type, std::vector<std::uint64_t> shape,
  std::span<const std::byte> bytes) {
  tensors_.push_back(
    {std::string(name), static_cast<std::uint32_t>(type), std::move(shape), {bytes.begin(), bytes.end()}});
  return *this;
}

std::vector<std::byte> writer::finish() const {
  std::vector<std::byte> out;
  append(out, std::as_bytes(std::span(std::string_view("GGUF"))));
  append_number(out, version_);
  append_number(out, static_cast<std::uint64_t>(tensors_.size()));
  append_number(out, static_cast<std::uint64_t>(values_.size()));
  for (const auto& item : values_) {
    append_string(out, item.name);
    append_number(out, item.type);
    append(out, item.bytes);
  }

  std::vector<std::byte> data;
  for (const auto& item : tensors_) {
    append_string(out, item.name);
    append_number(out, static_cast<std::uint32_t>(item.shape.size()));
    for (const auto extent : item.shape)
      append_number(out, extent);
    append_number(out, item.type);
    append_number(out, static_cast<std::uint64_t>(data.size()));
    append(data, item.bytes);
    pad(data, alignment_);
  }
  if (!tensors_.empty()) {
    pad(out, alignment_);
    append(out, data);
  }
  return out;
}

} // namespace godwit::gguf
