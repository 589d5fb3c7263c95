#include "messages/letter.hpp"

#include <capnp/dynamic.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <cstring>

namespace godwit::detail {

namespace {

/// The segment table of a one-segment message: count minus one, then the size in words (little-endian).
std::uint64_t one_segment(std::size_t words) {
  return static_cast<std::uint64_t>(words) << 32;
}

void walk(const capnp::DynamicValue::Reader& value);

void walk(const capnp::DynamicStruct::Reader& value) {
  for (auto field : value.getSchema().getNonUnionFields())
    if (value.has(field))
      walk(value.get(field));
  KJ_IF_MAYBE (field, value.which())
    if (value.has(*field))
      walk(value.get(*field));
}

/// Reads every field once; Cap'n Proto throws where the bytes do not fit the schema.
void walk(const capnp::DynamicValue::Reader& value) {
  switch (value.getType()) {
  case capnp::DynamicValue::STRUCT:
    walk(value.as<capnp::DynamicStruct>());
    break;
  case capnp::DynamicValue::LIST:
    for (auto element : value.as<capnp::DynamicList>())
      walk(element);
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

result<std::shared_ptr<const letter_body>> parse_letter(std::span<const std::byte> bytes,
  capnp::StructSchema schema, std::vector<attachment> attachments, letter_limits limits) {
  if (bytes.size() > limits.bytes)
    return fail(errc::too_large, "a letter of " + std::to_string(bytes.size())
                                   + " bytes is over the limit of " + std::to_string(limits.bytes));
  if (bytes.size() % sizeof(capnp::word) != 0 || bytes.empty())
    return fail(errc::corrupt, "a letter is not a whole number of words");
  // Socket frames are not aligned to 8 bytes: copy first.
  std::vector<std::uint64_t> aligned(bytes.size() / sizeof(std::uint64_t));
  std::memcpy(aligned.data(), bytes.data(), bytes.size());
  try {
    const auto words = kj::arrayPtr(reinterpret_cast<const capnp::word*>(aligned.data()), aligned.size());
    capnp::ReaderOptions options;
    // Twice: once for the walk, once for the copy. Pointers that share a target count each time, so a small
    // message cannot unfold into a large one.
    options.traversalLimitInWords = 2 * limits.bytes / sizeof(capnp::word) + 16;
    options.nestingLimit = limits.depth;
    capnp::FlatArrayMessageReader reader(words, options);
    if (reader.getEnd() != words.end())
      return fail(errc::corrupt, "a letter has bytes behind its end");
    walk(reader.getRoot<capnp::DynamicStruct>(schema));
    return letter_body::copy(reader.getRoot<capnp::AnyStruct>(), std::move(attachments));
  } catch (const kj::Exception& exception) {
    // The description quotes the library, never the content.
    return fail(errc::corrupt, std::string("a letter is malformed: ") + exception.getDescription().cStr());
  }
}

} // namespace godwit::detail
