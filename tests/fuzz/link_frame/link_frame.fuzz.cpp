// Bytes from a peer's socket as a frame: it is refused, or what was read can be written and read again;
// bodies of the link's own kinds are read as their letters.
#include "messages/check.hpp"
#include "services/link/frame.hpp"
#include "services/link/hello.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace godwit;
  using namespace godwit::link;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto out = decode(bytes);
  if (!out) {
    const auto code = out.error().code;
    GODWIT_CHECK(code == errc::corrupt || code == errc::too_large || code == errc::unsupported);
    return 0;
  }
  const auto& [header, words] = *out;
  const auto written = encode(header, words);
  GODWIT_CHECK(written.size() <= bytes.size());
  const auto again = decode(written);
  GODWIT_CHECK(again.has_value());
  GODWIT_CHECK(again->header == header);
  GODWIT_CHECK(std::ranges::equal(again->words, words));

  switch (header.kind) {
  case frame_kind::hello:
  case frame_kind::welcome:
    if (const auto mail = letter<schema::Hello>::parse(words))
      if (const auto said = from_letter(*mail)) {
        GODWIT_CHECK(valid_node_name(said->node.value));
        GODWIT_CHECK(!incompatibility(*said, *said));
        GODWIT_CHECK(from_letter(to_letter(*said)) == *said);
      }
    break;
  case frame_kind::failure:
  case frame_kind::refused:
    if (const auto mail = letter<schema::Failure>::parse(words))
      GODWIT_CHECK(to_string(from_letter(*mail, header.code).code) != "unknown");
    break;
  case frame_kind::beat:
    (void)letter<schema::Beat>::parse(words);
    break;
  default:
    break;
  }
  return 0;
}
