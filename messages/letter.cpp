#include "messages/letter.hpp"

#include <capnp/dynamic.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <algorithm>
#include <cstring>

namespace godwit::detail {

namespace {

/// The segment table of a one-segment message: count minus one, then the size in words (little-endian).
std::uint64_t one_segment(std::size_t words) {
  return static_cast<std::uint64_t>(words) << 32;
}

constexpr std::size_t spare_words = std::size_t{1} << 14;

void walk(const capnp::DynamicValue::Reader& value);

void walk(const capnp::DynamicStruct::Reader& value) {
  for (auto field : value.getSchema().getNonUnionFields())
    if (value.has(field))
      walk(value.get(field));
  KJ_IF_MAYBE (field, value.which())
    if (value.has(*field))
      walk(value.get(*field));
}

/// No writer of ours makes such structs; a short message could hold a billion of them in a list.
bool takes_no_space(const capnp::AnyStruct::Reader& value) {
  return value.getDataSection().size() == 0 && value.getPointerSection().size() == 0;
}

/// Reads every field once; Cap'n Proto throws where the bytes do not fit the schema.
void walk(const capnp::DynamicValue::Reader& value) {
  switch (value.getType()) {
  case capnp::DynamicValue::STRUCT:
    walk(value.as<capnp::DynamicStruct>());
    break;
  case capnp::DynamicValue::LIST:
    for (auto element : value.as<capnp::DynamicList>()) {
      if (element.getType() == capnp::DynamicValue::STRUCT) {
        KJ_REQUIRE(!takes_no_space(element.as<capnp::DynamicStruct>()), "list of elements without size");
      }
      walk(element);
    }
    break;
  default:
    break;
  }
}

} // namespace

std::shared_ptr<const letter_body> letter_body::copy(
  const capnp::AnyStruct::Reader& root, std::vector<attachment> attachments) {
  const auto size = root.totalSize().wordCount + 1;
  std::vector<std::uint64_t> words(size + 1);
  words[0] = one_segment(size);
  capnp::copyToUnchecked(root, kj::arrayPtr(reinterpret_cast<capnp::word*>(words.data() + 1), size));
  return std::make_shared<const letter_body>(std::move(words), std::move(attachments));
}

namespace {

result<std::shared_ptr<const letter_body>> check_and_copy(std::span<const std::byte> bytes,
  capnp::StructSchema schema, std::vector<attachment> attachments, const letter_limits& limits) {
  if (bytes.size() > limits.bytes)
    return fail(errc::too_large, "a letter of " + std::to_string(bytes.size())
                                   + " bytes is over the limit of " + std::to_string(limits.bytes));
  if (bytes.size() % sizeof(capnp::word) != 0 || bytes.empty())
    return fail(errc::corrupt, "a letter is not a whole number of words");
  // Socket frames are not aligned to 8 bytes: copy first.
  std::vector<std::uint64_t> aligned(bytes.size() / sizeof(std::uint64_t));
  std::memcpy(aligned.data(), bytes.data(), bytes.size());
  // The table's count of segments, less one. Cap'n Proto takes none for an empty message, whatever follows.
  if (static_cast<std::uint32_t>(aligned.front()) == 0xffffffff)
    return fail(errc::corrupt, "a letter has no segments");
  try {
    const auto words = kj::arrayPtr(reinterpret_cast<const capnp::word*>(aligned.data()), aligned.size());
    capnp::ReaderOptions options;
    // Three times over what is there: for the walk, the sizing and the copy; and a little, for what costs
    // without taking space. Pointers that share a target count each time, so a small message cannot unfold
    // into a large one.
    options.traversalLimitInWords = 3 * aligned.size() + spare_words;
    options.nestingLimit = limits.depth;
    capnp::FlatArrayMessageReader reader(words, options);
    if (reader.getEnd() != words.end())
      return fail(errc::corrupt, "a letter has bytes behind its end");
    walk(reader.getRoot<capnp::DynamicStruct>(schema));
    auto body = letter_body::copy(reader.getRoot<capnp::AnyStruct>(), std::move(attachments));
    if (body->bytes().size() > std::max(bytes.size(), 2 * sizeof(capnp::word)))
      return fail(errc::corrupt, "parts of a letter overlap");
    return body;
  } catch (const kj::Exception& exception) {
    // The description quotes the library, never the content.
    return fail(errc::corrupt, std::string("a letter is malformed: ") + exception.getDescription().cStr());
  }
}

} // namespace

result<std::shared_ptr<const letter_body>> parse_letter(std::span<const std::byte> bytes,
  capnp::StructSchema schema, std::vector<attachment> attachments, letter_limits limits) {
  auto body = check_and_copy(bytes, schema, std::move(attachments), limits);
  // One that sheds unused words in its copy has less to spare where it goes next: who is to read it there
  // decides whether it is a letter.
  if (body && (*body)->bytes().size() < bytes.size())
    return check_and_copy((*body)->bytes(), schema, (*body)->attachments(), limits);
  return body;
}

} // namespace godwit::detail
