#include "services/daemon/address_file.hpp"

#include <algorithm>
#include <fstream>

namespace godwit {

namespace {

constexpr std::size_t most_url_bytes = 16'384;

} // namespace

result<std::string> address_in(const std::filesystem::path& path, const std::string& setting) {
  std::ifstream file(path, std::ios::binary);
  std::string text(most_url_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || !file.is_open())
    return fail(errc::io, "the file of " + setting + " cannot be read: " + path.string(), setting);
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > most_url_bytes)
    return fail(errc::invalid_argument, "the file of " + setting + " is too large", setting);
  text.resize(std::min(text.find_first_of("\r\n"), text.size()));
  if (text.empty())
    return fail(errc::invalid_argument, "the file of " + setting + " is empty", setting);
  return text;
}

} // namespace godwit
