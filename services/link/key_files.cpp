#include "messages/check.hpp"
#include "messages/descriptor.hpp"
#include "services/link/hello.hpp"
#include "services/link/keys.hpp"

#include <zmq.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>

namespace godwit::link {

namespace {

constexpr std::string_view secret_word = "godwit-secret-1";
constexpr std::size_t most_bytes = std::size_t{1} << 20;

/// A text that is wiped when it goes.
struct secret_text {
  std::string text;
  ~secret_text() { ::explicit_bzero(text.data(), text.size()); }
};

tl::unexpected<error> refusal(const std::filesystem::path& file, int number) {
  const auto named = "the key file " + file.string();
  switch (number) {
  case ENOENT:
    return fail(errc::not_found, named + " is not there");
  case EEXIST:
    return fail(errc::conflict, named + " exists; keys are never overwritten");
  case EACCES:
  case EPERM:
  case EROFS:
    return fail(errc::permission, named + " cannot be opened by this user");
  case ELOOP:
    return fail(errc::permission, named + " is a link; name the file itself");
  default:
    return fail(errc::io, named + ": " + std::system_category().message(number));
  }
}

result<void> write_file(const std::filesystem::path& file, std::string_view text, mode_t mode) {
  const descriptor out(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!out)
    return refusal(file, errno);
  // The umask may have taken more away, which is fine; the secret must not have more than its mode.
  while (!text.empty()) {
    const auto done = ::write(*out, text.data(), text.size());
    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0)
      return refusal(file, done == 0 ? EIO : errno);
    text.remove_prefix(static_cast<std::size_t>(done));
  }
  if (::fsync(*out) != 0)
    return refusal(file, errno);
  return {};
}

result<std::string> read_file(const std::filesystem::path& file, bool is_secret) {
  const descriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | (is_secret ? O_NOFOLLOW : 0)));
  if (!in)
    return refusal(file, errno);
  struct stat about {};
  if (::fstat(*in, &about) != 0)
    return refusal(file, errno);
  if (!S_ISREG(about.st_mode))
    return fail(errc::corrupt, "the key file " + file.string() + " is not a file");
  if (is_secret && about.st_uid != ::geteuid() && about.st_uid != 0)
    return fail(errc::permission, "the secret key " + file.string() + " belongs to another user");
  if (is_secret && (about.st_mode & 077) != 0)
    return fail(errc::permission,
      "the secret key " + file.string() + " can be read by others; run: chmod 600 " + file.string());
  if (about.st_size < 0 || static_cast<std::size_t>(about.st_size) > most_bytes)
    return fail(errc::corrupt, "the key file " + file.string() + " is too long to be one");
  std::string text(static_cast<std::size_t>(about.st_size), '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const auto got = ::read(*in, text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return refusal(file, errno);
    if (got == 0)
      break;
    have += static_cast<std::size_t>(got);
  }
  text.resize(have);
  return text;
}

} // namespace

std::filesystem::path secret_file(const std::filesystem::path& folder, const node_name& node) {
  return folder / (node.value + ".secret");
}

std::filesystem::path public_file(const std::filesystem::path& folder, const node_name& node) {
  return folder / (node.value + ".public");
}

result<void> save_keys(const node_keys& keys, const std::filesystem::path& folder) {
  if (!valid_node_name(keys.node.value))
    return fail(errc::invalid_argument, "the keys are of a node without a valid name", "name");
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code)
    return fail(errc::io, "the folder " + folder.string() + " cannot be made: " + code.message());
  std::array<char, 41> secret{};
  zmq_z85_encode(secret.data(), reinterpret_cast<const std::uint8_t*>(keys.secret.bytes().data()),
    keys.secret.bytes().size());
  const secret_text line{std::string(secret_word) + " " + keys.node.value + " " + secret.data() + "\n"};
  ::explicit_bzero(secret.data(), secret.size());
  if (auto written = write_file(secret_file(folder, keys.node), line.text, 0600); !written)
    return written;
  return write_file(public_file(folder, keys.node), to_line({keys.node, keys.open}) + "\n", 0644);
}

result<node_keys> load_keys(const std::filesystem::path& file) {
  auto text = read_file(file, true);
  if (!text)
    return fail(text);
  const secret_text held{std::move(*text)};
  const auto wrong = [&file] {
    return fail(
      errc::corrupt, "the key file " + file.string() + " is not: " + std::string(secret_word) + " NODE KEY");
  };
  std::string_view line = held.text;
  if (!line.ends_with('\n'))
    return wrong();
  line.remove_suffix(1);
  const auto first = line.find(' ');
  const auto second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos || line.substr(0, first) != secret_word)
    return wrong();
  const auto name = line.substr(first + 1, second - first - 1);
  const auto word = line.substr(second + 1);
  // A secret has the form of a public key.
  auto raw = from_z85(word);
  if (!valid_node_name(name) || !raw)
    return wrong();
  const secret_text ended{std::string(word)};
  std::array<char, 41> open{};
  if (zmq_curve_public(open.data(), ended.text.c_str()) != 0)
    return fail(errc::unsupported, "this machine's libzmq has no CURVE");
  auto key = from_z85({open.data(), 40});
  GODWIT_CHECK(key.has_value());
  node_keys keys{node_name(std::string(name)), *key, secret_key(raw->bytes)};
  ::explicit_bzero(raw->bytes.data(), raw->bytes.size());
  return keys;
}

result<std::vector<known_key>> load_known_keys(const std::filesystem::path& file) {
  const auto text = read_file(file, false);
  if (!text)
    return fail(text);
  std::vector<known_key> all;
  std::string_view rest = *text;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const auto end = rest.find('\n');
    const auto line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    if (line.empty() || line.starts_with('#'))
      continue;
    auto known = from_line(line);
    if (!known)
      return fail(errc::corrupt,
        "line " + std::to_string(number) + " of " + file.string() + ": " + known.error().message);
    all.push_back(std::move(*known));
  }
  return all;
}

} // namespace godwit::link
