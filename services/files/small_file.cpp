#include "services/files/small_file.hpp"

#include <cerrno>
#include <fstream>
#include <system_error>

namespace godwit {

result<std::string> read_small_file(const std::filesystem::path& path, std::string_view what) {
  const auto named = std::string(what) + " " + path.string();
  const auto unreadable = [&](const std::error_code& why) {
    return fail(why == std::errc::no_such_file_or_directory ? errc::not_found : errc::io,
      "cannot read " + named + (why ? ": " + why.message() : ""));
  };
  std::error_code code;
  if (std::filesystem::is_directory(path, code))
    return unreadable(std::make_error_code(std::errc::is_a_directory));
  if (code)
    return unreadable(code);
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in.is_open())
    return unreadable({errno, std::generic_category()});
  // Its size may change while it is read.
  std::string content(most_small_file_bytes + 1, '\0');
  in.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (in.bad())
    return unreadable({});
  content.resize(static_cast<std::size_t>(in.gcount()));
  if (content.size() > most_small_file_bytes)
    return fail(errc::invalid_argument, named + " is over 1 MiB long");
  return content;
}

} // namespace godwit
