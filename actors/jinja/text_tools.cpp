#include "actors/jinja/methods.hpp"

#include "actors/jinja/operators.hpp"
#include "actors/jinja/printing.hpp"
#include "actors/text/letters.hpp"
#include "actors/text/utf8.hpp"

#include <algorithm>
#include <cstring>

namespace godwit::jinja {

namespace {

/// Where a line ends for str.splitlines().
bool ends_line(char32_t code) {
  return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 || code == 0x2028
         || code == 0x2029;
}

/// The start of the last character.
std::size_t last_start(std::string_view bytes) {
  auto at = bytes.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(bytes[at]) & 0xC0) == 0x80)
    --at;
  return at;
}

} // namespace

std::vector<std::string_view> split_lines(std::string_view bytes, bool keep_ends) {
  std::vector<std::string_view> lines;
  std::size_t start = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto here = utf8::first(bytes.substr(at));
    auto next = at + here.size;
    if (ends_line(here.code)) {
      if (here.code == U'\r' && next < bytes.size() && bytes[next] == '\n')
        ++next;
      lines.push_back(bytes.substr(start, (keep_ends ? next : at) - start));
      start = next;
    }
    at = next;
  }
  if (start < bytes.size())
    lines.push_back(bytes.substr(start));
  return lines;
}

std::size_t find_bytes(std::string_view whole, std::string_view part) {
  if (part.empty())
    return 0;
  if (whole.empty())
    return std::string_view::npos;
  const void* found = memmem(whole.data(), whole.size(), part.data(), part.size());
  return found ? static_cast<std::size_t>(static_cast<const char*>(found) - whole.data())
               : std::string_view::npos;
}

std::size_t find_last_bytes(budget& costs, std::string_view whole, std::string_view part) {
  const auto steps = whole.size() / 64 + 1;
  if (!costs.spend(steps * std::min(part.size() + 1, whole.size() + 1)))
    return std::string_view::npos;
  return whole.rfind(part);
}

std::string_view strip(
  budget& costs, std::string_view bytes, std::optional<std::string_view> characters, bool left, bool right) {
  // The set in order, so that a long one costs little for each character.
  std::u32string set;
  for (auto rest = characters.value_or(""); !rest.empty(); rest.remove_prefix(utf8::first(rest).size))
    set.push_back(utf8::first(rest).code);
  std::ranges::sort(set);
  costs.spend(set.size() / 2);
  const auto goes = [&](std::string_view one) {
    const auto code = utf8::first(one).code;
    return characters ? std::ranges::binary_search(set, code) : letters::is_space(code);
  };
  const auto whole = bytes.size();
  while (left && !bytes.empty() && goes(bytes.substr(0, utf8::first(bytes).size)))
    bytes.remove_prefix(utf8::first(bytes).size);
  while (right && !bytes.empty() && goes(bytes.substr(last_start(bytes))))
    bytes = bytes.substr(0, last_start(bytes));
  costs.spend_bytes(8 * (whole - bytes.size()));
  return bytes;
}

std::string replace_all(
  budget& costs, std::string_view bytes, std::string_view old, std::string_view with, std::int64_t count) {
  text_builder out(costs);
  costs.spend_bytes(bytes.size());
  std::int64_t done = 0;
  const auto more = [&] { return (count < 0 || done < count) && costs.spend(done % 8 == 0 ? 1 : 0); };
  if (old.empty()) {
    // An empty string stands before every character and at the end.
    for (; more(); ++done) {
      out.append(with);
      if (bytes.empty())
        return out.finish();
      const auto size = utf8::first(bytes).size;
      out.append(bytes.substr(0, size));
      bytes.remove_prefix(size);
    }
  } else {
    for (auto at = find_bytes(bytes, old); at != std::string_view::npos && more();
         at = find_bytes(bytes, old), ++done) {
      out.append(bytes.substr(0, at));
      out.append(with);
      bytes.remove_prefix(at + old.size());
    }
  }
  out.append(bytes);
  return out.finish();
}

outcome<std::string> join(
  heap& memory, std::string_view separator, const std::vector<value>& items, bool strict) {
  text_builder out(memory.costs());
  bool next = false;
  for (const auto& item : items) {
    if (std::exchange(next, true))
      out.append(separator);
    if (strict && !as_text(item))
      return stop("join() needs strings, not '" + std::string(type_name(item)) + "'");
    print(out, item);
    if (!memory.costs().spend())
      break;
  }
  return out.finish();
}

std::string center(budget& costs, const text& t, std::int64_t width, std::string_view fill) {
  const auto size = static_cast<std::int64_t>(t.length());
  const auto missing = std::max<std::int64_t>(width - std::min(size, width), 0);
  // CPython gives the odd one to the left if the width is odd too.
  const auto left = missing / 2 + (missing & width & 1);
  text_builder out(costs);
  out.append(static_cast<std::size_t>(left), fill);
  out.append(t.bytes());
  out.append(static_cast<std::size_t>(missing - left), fill);
  return out.finish();
}

} // namespace godwit::jinja
