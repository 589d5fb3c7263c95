#include "kernels/gguf/parser.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <type_traits>

namespace godwit::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is read as it lies in memory");

/// Metadata types, numbered as in the file.
enum value_type : std::uint32_t {
  type_u8,
  type_i8,
  type_u16,
  type_i16,
  type_u32,
  type_i32,
  type_f32,
  type_bool,
  type_string,
  type_array,
  type_u64,
  type_i64,
  type_f64,
};

constexpr std::size_t quoted_bytes = 64;

/// A name from the file as an error message may show it: printable, of bounded length.
std::string quoted(std::string_view name) {
  std::string text = "\"";
  for (const char c : name.substr(0, quoted_bytes))
    text += c >= 0x20 && c < 0x7f && c != '"' ? c : '?';
  return text + (name.size() > quoted_bytes ? "...\"" : "\"");
}

bool printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
}

/// Fills `order` with the indices of `count` things in the order of their names.
/// @returns the index of a thing whose name another has too
template <class NameOf>
std::optional<std::uint32_t> sort_by_name(
  std::vector<std::uint32_t>& order, std::size_t count, NameOf name_of) {
  order.resize(count);
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, name_of);
  const auto twin = std::ranges::adjacent_find(order, {}, name_of);
  if (twin == order.end())
    return std::nullopt;
  return *twin;
}

} // namespace

bool parser::run() {
  return read_header() && read_metadata() && read_alignment() && read_tensor_table() && place_tensors()
         && check_overlap();
}

bool parser::refuse(errc code, std::string message) {
  failure_ = error{code, std::move(message), {}, {}};
  return false;
}

bool parser::truncated(const std::string& what) {
  return refuse(errc::corrupt, "the model file ends within " + what);
}

template <class T>
bool parser::read(const std::string& what, T& out) {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_same_v<T, bool>);
  if (remaining() < sizeof(T))
    return truncated(what);
  std::memcpy(&out, bytes_.data() + at_, sizeof(T));
  at_ += sizeof(T);
  return true;
}

bool parser::read_string(std::uint64_t limit, const std::string& what, std::string_view& out) {
  std::uint64_t size = 0;
  if (!read(what, size))
    return false;
  if (size > limit)
    return refuse(errc::corrupt, "the model file has a string of " + std::to_string(size) + " bytes in "
                                   + what + ", more than " + std::to_string(limit));
  if (size > remaining())
    return truncated(what);
  out = {reinterpret_cast<const char*>(bytes_.data() + at_), static_cast<std::size_t>(size)};
  at_ += static_cast<std::size_t>(size);
  return true;
}

bool parser::read_header() {
  static constexpr std::string_view magic = "GGUF";
  const std::string what = "its header";
  if (bytes_.size() < magic.size() || std::memcmp(bytes_.data(), magic.data(), magic.size()) != 0)
    return refuse(errc::corrupt, "the model file is not a GGUF file");
  at_ = magic.size();

  std::uint32_t version = 0;
  if (!read(what, version))
    return false;
  // A file of the other byte order has its small version number in the upper half.
  if (version != 0 && (version & 0xffffU) == 0)
    return refuse(errc::unsupported, "the model file is a big-endian GGUF file; only little-endian is read");
  if (version != 2 && version != 3)
    return refuse(errc::unsupported,
      "the model file has GGUF version " + std::to_string(version) + "; versions 2 and 3 are read");
  target_.version_ = version;

  if (!read(what, tensor_count_) || !read(what, key_count_))
    return false;
  if (tensor_count_ > limits::tensors)
    return refuse(errc::corrupt, "the model file claims " + std::to_string(tensor_count_)
                                   + " tensors, more than " + std::to_string(limits::tensors));
  if (key_count_ > limits::keys)
    return refuse(errc::corrupt, "the model file claims " + std::to_string(key_count_)
                                   + " metadata keys, more than " + std::to_string(limits::keys));
  return true;
}

bool parser::read_metadata() {
  for (std::uint64_t i = 0; i < key_count_; ++i) {
    std::string_view key;
    if (!read_string(limits::key_bytes, "metadata key " + std::to_string(i), key))
      return false;
    if (key.empty() || !printable(key))
      return refuse(errc::corrupt,
        "the model file has an empty or unprintable name for metadata key " + std::to_string(i));
    const auto what = "metadata key " + quoted(key);
    std::uint32_t type = 0;
    value item;
    if (!read(what, type) || !read_value(type, what, item))
      return false;
    target_.metadata_.emplace_back(key, std::move(item));
  }
  const auto key_of = [&](std::uint32_t i) { return target_.metadata_[i].first; };
  if (const auto twin = sort_by_name(target_.keys_, target_.metadata_.size(), key_of))
    return refuse(errc::corrupt, "the model file has metadata key " + quoted(key_of(*twin)) + " twice");
  return true;
}

bool parser::read_value(std::uint32_t type, const std::string& what, value& out) {
  const auto number = [&](auto kind) { return read(what, kind) && (out = kind, true); };
  switch (type) {
  case type_u8:
    return number(std::uint8_t{});
  case type_i8:
    return number(std::int8_t{});
  case type_u16:
    return number(std::uint16_t{});
  case type_i16:
    return number(std::int16_t{});
  case type_u32:
    return number(std::uint32_t{});
  case type_i32:
    return number(std::int32_t{});
  case type_f32:
    return number(float{});
  case type_u64:
    return number(std::uint64_t{});
  case type_i64:
    return number(std::int64_t{});
  case type_f64:
    return number(double{});
  case type_bool: {
    std::uint8_t byte = 0;
    if (!read(what, byte))
      return false;
    if (byte > 1)
      return refuse(errc::corrupt, "the model file has a boolean that is neither 0 nor 1 in " + what);
    out = byte == 1;
    return true;
  }
  case type_string: {
    std::string_view text;
    if (!read_string(limits::string_bytes, what, text))
      return false;
    out = text;
    return true;
  }
  case type_array:
    return read_array(what, out);
  default:
    return refuse(
      errc::corrupt, "the model file has unknown value type " + std::to_string(type) + " in " + what);
  }
}

template <class T>
bool parser::read_items(std::uint64_t count, const std::string& what, array& out) {
  // In the file a boolean is a byte, and a string takes at least its length.
  constexpr std::size_t least = std::is_same_v<T, std::string_view> ? sizeof(std::uint64_t)
                                : std::is_same_v<T, bool>           ? 1
                                                                    : sizeof(T);
  if (count > remaining() / least)
    return truncated(what);
  const auto size = static_cast<std::size_t>(count);
  auto& items = out.items.emplace<std::vector<T>>();
  if constexpr (std::is_same_v<T, std::string_view>) {
    items.resize(size);
    for (auto& item : items)
      if (!read_string(limits::string_bytes, what, item))
        return false;
  } else if constexpr (std::is_same_v<T, bool>) {
    items.resize(size);
    for (std::size_t i = 0; i < size; ++i) {
      const auto byte = std::to_integer<unsigned>(bytes_[at_ + i]);
      if (byte > 1)
        return refuse(errc::corrupt, "the model file has a boolean that is neither 0 nor 1 in " + what);
      items[i] = byte == 1;
    }
    at_ += size;
  } else {
    items.resize(size);
    if (size > 0)
      std::memcpy(items.data(), bytes_.data() + at_, size * sizeof(T));
    at_ += size * sizeof(T);
  }
  return true;
}

bool parser::read_array(const std::string& what, value& out) {
  std::uint32_t type = 0;
  std::uint64_t count = 0;
  if (!read(what, type) || !read(what, count))
    return false;
  if (count > limits::array_items)
    return refuse(errc::corrupt, "the model file claims an array of " + std::to_string(count) + " items in "
                                   + what + ", more than " + std::to_string(limits::array_items));
  auto items = std::make_shared<array>();
  const auto read_all = [&]<class T>(std::type_identity<T>) { return read_items<T>(count, what, *items); };
  bool good = false;
  switch (type) {
  case type_u8:
    good = read_all(std::type_identity<std::uint8_t>{});
    break;
  case type_i8:
    good = read_all(std::type_identity<std::int8_t>{});
    break;
  case type_u16:
    good = read_all(std::type_identity<std::uint16_t>{});
    break;
  case type_i16:
    good = read_all(std::type_identity<std::int16_t>{});
    break;
  case type_u32:
    good = read_all(std::type_identity<std::uint32_t>{});
    break;
  case type_i32:
    good = read_all(std::type_identity<std::int32_t>{});
    break;
  case type_f32:
    good = read_all(std::type_identity<float>{});
    break;
  case type_bool:
    good = read_all(std::type_identity<bool>{});
    break;
  case type_string:
    good = read_all(std::type_identity<std::string_view>{});
    break;
  case type_u64:
    good = read_all(std::type_identity<std::uint64_t>{});
    break;
  case type_i64:
    good = read_all(std::type_identity<std::int64_t>{});
    break;
  case type_f64:
    good = read_all(std::type_identity<double>{});
    break;
  case type_array:
    return refuse(errc::corrupt, "the model file has an array of arrays in " + what);
  default:
    return refuse(
      errc::corrupt, "the model file has unknown item type " + std::to_string(type) + " in " + what);
  }
  out = std::shared_ptr<const array>(std::move(items));
  return good;
}

bool parser::read_alignment() {
  static constexpr std::string_view key = "general.alignment";
  if (target_.find(key) == nullptr)
    return true;
  const auto given = target_.unsigned_value(key);
  if (!given)
    return refuse(errc::corrupt, given.error().message);
  if (*given < 8 || *given > limits::alignment || !std::has_single_bit(*given))
    return refuse(errc::corrupt, "the model file has alignment " + std::to_string(*given)
                                   + ", not a power of two from 8 to " + std::to_string(limits::alignment));
  alignment_ = *given;
  return true;
}

bool parser::read_tensor_table() {
  for (std::uint64_t i = 0; i < tensor_count_; ++i) {
    tensor item;
    if (!read_string(limits::tensor_name_bytes, "the name of tensor " + std::to_string(i), item.name))
      return false;
    if (item.name.empty() || !printable(item.name))
      return refuse(
        errc::corrupt, "the model file has an empty or unprintable name for tensor " + std::to_string(i));
    const auto what = "tensor " + quoted(item.name);

    std::uint32_t dimensions = 0;
    if (!read(what, dimensions))
      return false;
    if (dimensions == 0 || dimensions > limits::dimensions)
      return refuse(errc::corrupt, "the model file has " + std::to_string(dimensions) + " dimensions in "
                                     + what + ", not 1 to " + std::to_string(limits::dimensions));
    item.shape.resize(dimensions);
    for (auto& extent : item.shape) {
      if (!read(what, extent))
        return false;
      if (extent == 0)
        return refuse(errc::corrupt, "the model file has a dimension of 0 in " + what);
    }

    std::uint32_t type = 0;
    std::uint64_t offset = 0;
    if (!read(what, type) || !read(what, offset))
      return false;
    const auto known = to_tensor_type(type);
    if (!known)
      return refuse(errc::unsupported, "the model file has " + what + " of type number "
                                         + std::to_string(type)
                                         + ", which is not supported; use F32, F16, BF16, Q4_0, Q4_1, Q5_0, "
                                           "Q5_1, Q8_0, Q4_K, Q5_K or Q6_K");
    item.type = *known;
    if (item.columns() % block_elements(item.type) != 0)
      return refuse(errc::corrupt, "the model file has rows of " + std::to_string(item.columns())
                                     + " elements in " + what + ", not whole "
                                     + std::string(to_string(item.type)) + " blocks");
    if (offset % alignment_ != 0)
      return refuse(errc::corrupt, "the model file has an unaligned offset in " + what);
    offsets_.push_back(offset);
    target_.tensors_.push_back(std::move(item));
  }
  const auto name_of = [&](std::uint32_t i) { return target_.tensors_[i].name; };
  if (const auto twin = sort_by_name(target_.names_, target_.tensors_.size(), name_of))
    return refuse(errc::corrupt, "the model file has tensor " + quoted(name_of(*twin)) + " twice");
  return true;
}

bool parser::place_tensors() {
  if (target_.tensors_.empty())
    return true;
  const auto padding = (alignment_ - at_ % alignment_) % alignment_;
  if (padding > remaining())
    return truncated("the padding before its tensors");
  const auto data = bytes_.subspan(at_ + static_cast<std::size_t>(padding));
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    auto& item = target_.tensors_[i];
    const auto what = "tensor " + quoted(item.name);
    // Blocks times bytes of a block; elements are counted as well, since rows() and its like multiply them.
    std::uint64_t elements = 1;
    for (const auto extent : item.shape)
      if (__builtin_mul_overflow(elements, extent, &elements))
        return refuse(errc::corrupt, "the model file has dimensions that overflow in " + what);
    std::uint64_t size = 0;
    if (__builtin_mul_overflow(elements / block_elements(item.type), block_bytes(item.type), &size))
      return refuse(errc::corrupt, "the model file has dimensions that overflow in " + what);
    if (offsets_[i] > data.size() || size > data.size() - offsets_[i])
      return truncated("the data of " + what);
    item.data = data.subspan(static_cast<std::size_t>(offsets_[i]), static_cast<std::size_t>(size));
  }
  return true;
}

bool parser::check_overlap() {
  std::vector<const tensor*> order;
  for (const auto& item : target_.tensors_)
    order.push_back(&item);
  std::ranges::sort(order, {}, [](const tensor* t) { return t->data.data(); });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (order[i - 1]->data.data() + order[i - 1]->data.size() > order[i]->data.data())
      return refuse(errc::corrupt, "the model file has tensors " + quoted(order[i - 1]->name) + " and "
                                     + quoted(order[i]->name) + " in the same place");
  return true;
}

} // namespace godwit::gguf
