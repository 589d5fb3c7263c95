#include "services/mesh/block_yaml.hpp"

#include <algorithm>
#include <utility>

namespace godwit {

namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 20;
constexpr std::size_t most_levels = 16;

struct text_line {
  std::size_t number = 0;
  std::size_t indent = 0;
  std::string_view text; ///< without the indent and what follows it
};

tl::unexpected<error> wrong(std::size_t line, const std::string& what) {
  return fail(errc::corrupt, "line " + std::to_string(line) + ": " + what);
}

bool begins_item(std::string_view text) {
  return text == "-" || text.starts_with("- ");
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

result<std::vector<text_line>> lines_of(std::string_view text) {
  std::vector<text_line> out;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    auto line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    for (const char each : line)
      if (static_cast<unsigned char>(each) < ' ' || each == '\x7f')
        return wrong(number, "there is a control character");
    const auto indent = std::min(line.find_first_not_of(' '), line.size());
    const auto content = trim(line);
    if (content.empty() || content.starts_with('#'))
      continue;
    out.push_back({number, indent, content});
  }
  return out;
}

/// A quoted text at the front. @returns it, and what follows
result<std::pair<std::string, std::string_view>> quoted(std::size_t line, std::string_view text) {
  const char quote = text.front();
  std::string out;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == quote) {
      if (quote == '\'' && i + 1 < text.size() && text[i + 1] == quote) {
        out += text[i++]; // two of them stand for one
        continue;
      }
      return std::pair{std::move(out), text.substr(i + 1)};
    }
    if (quote == '"' && text[i] == '\\') {
      if (i + 1 >= text.size() || (text[i + 1] != '"' && text[i + 1] != '\\'))
        return wrong(line, "an escape is not known");
      ++i;
    }
    out += text[i];
  }
  return wrong(line, "a quoted text has no end");
}

result<block_yaml> scalar(std::size_t line, std::string_view text) {
  if (text == "[]")
    return block_yaml{block_yaml::list{}, line};
  if (text == "{}")
    return block_yaml{block_yaml::map{}, line};
  if (text.front() == '"' || text.front() == '\'') {
    auto whole = quoted(line, text);
    if (!whole)
      return fail(whole);
    if (!trim(whole->second).empty())
      return wrong(line, "something follows a quoted text");
    return block_yaml{std::move(whole->first), line};
  }
  // What these begin, and these in the middle, have a meaning that is not taken.
  if (std::string_view("&*!|>%@`[]{},?").find(text.front()) != std::string_view::npos
      || text.find(": ") != std::string_view::npos || text.find(" #") != std::string_view::npos
      || text.ends_with(':') || begins_item(text) || text.starts_with("---") || text.starts_with("..."))
    return wrong(line, "only plain and quoted texts can be read");
  return block_yaml{std::string(text), line};
}

class block_parser {
 public:
  explicit block_parser(std::vector<text_line> lines) : lines_(std::move(lines)) {}

  result<block_yaml> whole() {
    if (lines_.empty())
      return block_yaml{block_yaml::map{}, 1};
    auto out = block(lines_[0].indent, 1);
    if (out && at_ < lines_.size())
      return wrong(lines_[at_].number, "it is not indented as what it belongs to");
    return out;
  }

 private:
  bool more(std::size_t indent) const { return at_ < lines_.size() && lines_[at_].indent == indent; }

  result<block_yaml> block(std::size_t indent, std::size_t level) {
    if (level > most_levels)
      return wrong(lines_[at_].number, "it is too deep");
    return begins_item(lines_[at_].text) ? list(indent, level) : map(indent, level);
  }

  result<block_yaml> list(std::size_t indent, std::size_t level) {
    block_yaml out{block_yaml::list{}, lines_[at_].number};
    while (more(indent) && begins_item(lines_[at_].text)) {
      auto& line = lines_[at_];
      const auto rest = trim(line.text.substr(1));
      if (rest.empty())
        return wrong(line.number, "an item has no value");
      const auto is_map = rest.front() != '"' && rest.front() != '\''
                          && (rest.ends_with(':') || rest.find(": ") != std::string_view::npos);
      if (is_map) {
        // The rest of the line is the first of a block that stands further in.
        line.indent += static_cast<std::size_t>(rest.data() - line.text.data());
        line.text = rest;
        auto item = map(line.indent, level + 1);
        if (!item)
          return item;
        std::get<block_yaml::list>(out.value).push_back(std::move(*item));
        continue;
      }
      auto item = scalar(line.number, rest);
      if (!item)
        return item;
      std::get<block_yaml::list>(out.value).push_back(std::move(*item));
      ++at_;
    }
    return out;
  }

  result<block_yaml> map(std::size_t indent, std::size_t level) {
    if (level > most_levels)
      return wrong(lines_[at_].number, "it is too deep");
    block_yaml out{block_yaml::map{}, lines_[at_].number};
    auto& fields = std::get<block_yaml::map>(out.value);
    while (more(indent) && !begins_item(lines_[at_].text)) {
      const auto line = lines_[at_];
      auto split = key_of(line);
      if (!split)
        return fail(split);
      auto& [key, rest] = *split;
      if (out.find(key) != nullptr)
        return wrong(line.number, "\"" + key + "\" stands twice");
      ++at_;
      auto value = rest.empty() ? below(line, indent, level) : scalar(line.number, rest);
      if (!value)
        return value;
      fields.push_back({std::move(key), std::move(*value)});
    }
    return out;
  }

  /// What stands below a key: a block further in, or a list as far in as the key; else an empty text.
  result<block_yaml> below(const text_line& key, std::size_t indent, std::size_t level) {
    if (at_ < lines_.size()
        && (lines_[at_].indent > indent || (lines_[at_].indent == indent && begins_item(lines_[at_].text))))
      return block(lines_[at_].indent, level + 1);
    return block_yaml{std::string{}, key.number};
  }

  static result<std::pair<std::string, std::string_view>> key_of(const text_line& line) {
    std::string key;
    std::string_view rest;
    if (line.text.front() == '"' || line.text.front() == '\'') {
      auto split = quoted(line.number, line.text);
      if (!split)
        return fail(split);
      key = std::move(split->first);
      rest = split->second;
    } else {
      const auto colon = line.text.find(": ");
      const auto end = colon != std::string_view::npos ? colon : line.text.size() - 1;
      key = std::string(line.text.substr(0, end));
      rest = line.text.substr(end);
    }
    if (key.empty() || !rest.starts_with(':') || (rest.size() > 1 && rest[1] != ' '))
      return wrong(line.number, "it is not \"key: value\"");
    return std::pair{std::move(key), trim(rest.substr(1))};
  }

  std::vector<text_line> lines_;
  std::size_t at_ = 0;
};

} // namespace

const block_yaml* block_yaml::find(std::string_view key) const {
  const auto* const all = fields();
  if (all == nullptr)
    return nullptr;
  const auto found = std::ranges::find(*all, key, &field::key);
  return found == all->end() ? nullptr : &found->value;
}

result<block_yaml> block_yaml::parse(std::string_view text) {
  if (text.size() > most_bytes)
    return fail(errc::corrupt, "it is over 1 MiB long");
  auto lines = lines_of(text);
  if (!lines)
    return fail(lines);
  return block_parser(std::move(*lines)).whole();
}

} // namespace godwit
