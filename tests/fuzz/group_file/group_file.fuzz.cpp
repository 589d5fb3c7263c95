// The file of a role group: it is refused with a line, or everything in it is as the header says.
#include "services/mesh/group_file.hpp"
#include "messages/check.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace godwit;
  const auto file = parse_group_file({reinterpret_cast<const char*>(data), size});
  if (!file) {
    GODWIT_CHECK(file.error().code == errc::corrupt);
    GODWIT_CHECK(file.error().message.starts_with("line "));
    return 0;
  }
  GODWIT_CHECK(!file->name.empty());
  for (const auto& [role, instances] : file->roles)
    for (const auto& one : instances) {
      GODWIT_CHECK(!one.address.empty());
      for (const auto& [name, port] : one.ports)
        GODWIT_CHECK(port != 0);
    }
  return 0;
}
