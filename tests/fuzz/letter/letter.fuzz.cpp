// Bytes from outside as a letter: the first byte chooses the schema, the rest is the frame. It is refused, or
// reads completely, does not unfold, and travels on as the same letter.
#include "messages/letter.hpp"
#include "messages/check.hpp"

#include "messages/schemas/generation.capnp.h"
#include "messages/schemas/journal.capnp.h"
#include "messages/schemas/session.capnp.h"
#include "messages/schemas/status.capnp.h"
#include "messages/schemas/tokenizer.capnp.h"

#include <capnp/dynamic.h>
#include <kj/string.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace {

template <class Schema>
void try_as(std::span<const std::byte> frame) {
  using namespace godwit;
  const auto parsed = letter<Schema>::parse(frame);
  if (!parsed) {
    GODWIT_CHECK(parsed.error().code == errc::corrupt || parsed.error().code == errc::too_large);
    return;
  }
  GODWIT_CHECK(parsed->bytes().size() <= std::max<std::size_t>(frame.size(), 16));
  const auto content = kj::str(parsed->read());
  const auto again = letter<Schema>::parse(parsed->bytes());
  GODWIT_CHECK(again.has_value());
  GODWIT_CHECK(kj::str(again->read()) == content);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace godwit::schema;
  if (size == 0)
    return 0;
  const auto frame = std::as_bytes(std::span(data, size)).subspan(1);
  switch (data[0] % 8) {
  case 0:
    try_as<Record>(frame);
    break;
  case 1:
    try_as<GenerateRequest>(frame);
    break;
  case 2:
    try_as<TokenBatch>(frame);
    break;
  case 3:
    try_as<SessionInfo>(frame);
    break;
  case 4:
    try_as<EventBatch>(frame);
    break;
  case 5:
    try_as<NodeStatus>(frame);
    break;
  case 6:
    try_as<RenderRequest>(frame);
    break;
  default:
    try_as<CreditGrant>(frame);
    break;
  }
  return 0;
}
