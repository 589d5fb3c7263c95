#include "actors/jinja/filters.hpp"

#include "actors/jinja/access.hpp"
#include "actors/jinja/operators.hpp"
#include "actors/jinja/sorting.hpp"
#include "actors/text/letters.hpp"

#include <array>
#include <unordered_set>

namespace godwit::jinja {

namespace {

/// What is compared: strings in lower case unless the case counts.
value comparable(heap& memory, const value& v, bool case_sensitive) {
  const auto* t = as_text(v);
  if (!t || case_sensitive)
    return v;
  memory.costs().spend_bytes(16 * t->bytes().size());
  return memory.make_text(letters::lower(t->bytes()));
}

/// The paths of `attribute="age,name"`; one that is empty for the item itself.
outcome<std::vector<attribute_path>> paths_of(heap& memory, const value* attribute) {
  std::vector<attribute_path> paths;
  const auto* t = attribute ? as_text(*attribute) : nullptr;
  if (!t) {
    JINJA_TRY(auto path, attribute_path::parse(memory, attribute ? *attribute : value(none{})));
    paths.push_back(std::move(path));
    return paths;
  }
  auto rest = t->bytes();
  while (memory.costs().spend()) {
    const auto comma = rest.find(',');
    JINJA_TRY(auto path, attribute_path::parse(memory, memory.make_text(std::string(rest.substr(0, comma)))));
    paths.push_back(std::move(path));
    if (comma == std::string_view::npos)
      break;
    rest.remove_prefix(comma + 1);
  }
  return paths;
}

outcome<value> sort(heap& memory, const value& input, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("sort", given, {"reverse", "case_sensitive", "attribute"}));
  JINJA_TRY(const auto paths, paths_of(memory, p[2]));
  JINJA_TRY(auto items, items_of(memory, input));
  std::vector<value> keys;
  for (const auto& item : items) {
    std::vector<value> key;
    for (const auto& path : paths) {
      JINJA_TRY(const auto part, path.follow(memory, item));
      key.push_back(comparable(memory, part, p.flag(1, false)));
    }
    keys.emplace_back(memory.make_list(std::move(key)));
    JINJA_CHECK(memory.costs().check());
  }
  JINJA_TRY(auto out, sorted(memory.costs(), std::move(items), keys, p.flag(0, false)));
  return memory.make_list(std::move(out));
}

outcome<value> dict_sort(heap& memory, const value& input, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("dictsort", given, {"case_sensitive", "by", "reverse"}));
  const auto* d = as_mapping(input);
  if (!d)
    return is_undefined(input) ? outcome<value>(undefined_fault(input)) : stop("dictsort needs a mapping");
  JINJA_TRY(const auto by, p.string(1));
  if (by && *by != "key" && *by != "value")
    return stop("You can only sort by either \"key\" or \"value\"");
  std::vector<value> items;
  std::vector<value> keys;
  for (const auto& [key, what] : d->entries) {
    items.emplace_back(memory.make_list({key, what}, list::sort::tuple));
    keys.push_back(comparable(memory, by && *by == "value" ? what : key, p.flag(0, false)));
  }
  JINJA_TRY(auto out, sorted(memory.costs(), std::move(items), keys, p.flag(2, false)));
  return memory.make_list(std::move(out));
}

outcome<value> unique(heap& memory, const value& input, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("unique", given, {"case_sensitive", "attribute"}));
  JINJA_TRY(const auto path, attribute_path::parse(memory, p[1] ? *p[1] : value(none{})));
  JINJA_TRY(const auto items, items_of(memory, input));
  std::unordered_set<std::string> seen;
  std::vector<value> out;
  for (const auto& item : items) {
    JINJA_TRY(const auto part, path.follow(memory, item));
    JINJA_TRY(auto key, hash_key(memory.costs(), comparable(memory, part, p.flag(0, false))));
    if (seen.insert(std::move(key)).second)
      out.push_back(item);
    JINJA_CHECK(memory.costs().check());
  }
  return memory.make_list(std::move(out), list::sort::iterator);
}

template <bool Most>
outcome<value> extreme(heap& memory, const value& input, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind(Most ? "max" : "min", given, {"case_sensitive", "attribute"}));
  JINJA_TRY(const auto path, attribute_path::parse(memory, p[1] ? *p[1] : value(none{})));
  JINJA_TRY(const auto items, items_of(memory, input));
  std::optional<value> best;
  value best_key = undefined{};
  for (const auto& item : items) {
    memory.costs().spend();
    JINJA_TRY(const auto part, path.follow(memory, item));
    auto key = comparable(memory, part, p.flag(0, false));
    bool better = !best;
    if (best) {
      JINJA_TRY(better, Most ? less(memory.costs(), best_key, key) : less(memory.costs(), key, best_key));
    }
    if (better) {
      best = item;
      best_key = std::move(key);
    }
  }
  return best.value_or(undefined{});
}

} // namespace

std::span<const method> order_filters() {
  static constexpr auto table = std::to_array<method>({
    {"dictsort", dict_sort},
    {"max", extreme<true>},
    {"min", extreme<false>},
    {"sort", sort},
    {"unique", unique},
  });
  return table;
}

} // namespace godwit::jinja
