#include "tools/godwit/token_list.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <string>

namespace godwit::cli {

namespace {

constexpr std::string_view white_space = " \t\r\n\v\f";

tl::unexpected<error> no_token(std::size_t place, token_id size) {
  return fail(errc::invalid_argument, "number " + std::to_string(place)
                                        + " of the list is no token id: ids are 0 to "
                                        + std::to_string(size - 1));
}

result<std::vector<token_id>> read_array(std::string_view text, token_id size) {
  const auto list = nlohmann::json::parse(text, nullptr, false);
  if (!list.is_array())
    return fail(errc::invalid_argument, "the list of token ids is no JSON array");
  std::vector<token_id> ids;
  for (const auto& item : list) {
    if (!item.is_number_unsigned() || item.get<std::uint64_t>() >= size)
      return no_token(ids.size(), size);
    ids.push_back(item.get<token_id>());
  }
  return ids;
}

} // namespace

result<std::vector<token_id>> read_token_list(std::string_view text, token_id size) {
  text.remove_prefix(std::min(text.find_first_not_of(white_space), text.size()));
  if (text.starts_with('['))
    return read_array(text, size);
  std::vector<token_id> ids;
  while (!text.empty()) {
    const auto word = text.substr(0, text.find_first_of(white_space));
    token_id id = 0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (failure != std::errc() || end != word.data() + word.size() || id >= size)
      return no_token(ids.size(), size);
    ids.push_back(id);
    text.remove_prefix(word.size());
    text.remove_prefix(std::min(text.find_first_not_of(white_space), text.size()));
  }
  return ids;
}

} // namespace godwit::cli
