#include "actors/jinja/filters.hpp"

#include "actors/jinja/access.hpp"
#include "actors/jinja/operators.hpp"
#include "actors/jinja/printing.hpp"

#include <algorithm>
#include <array>

namespace godwit::jinja {

namespace {

outcome<value> length(heap&, const value& input, arguments& given) {
  JINJA_CHECK(parameters::bind("length", given, {}));
  JINJA_TRY(const auto n, length_of(input));
  return count_value(n);
}

outcome<value> default_value(heap& memory, const value& input, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("default", given, {"default_value", "boolean"}));
  if (!is_undefined(input) && !(p.flag(1, false) && !truth(input)))
    return input;
  return p[0] ? *p[0] : memory.make_text("");
}

outcome<value> join_filter(heap& memory, const value& input, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("join", given, {"d", "attribute"}));
  JINJA_TRY(auto items, items_of(memory, input));
  if (p[1] && !is_none(*p[1])) {
    JINJA_TRY(const auto path, attribute_path::parse(memory, *p[1]));
    for (auto& item : items) {
      JINJA_TRY(item, path.follow(memory, item));
    }
  }
  const auto separator = p[0] ? *p[0] : value(undefined{});
  std::string scratch;
  JINJA_TRY(auto joined, join(memory, printed(memory.costs(), separator, scratch), items, false));
  return memory.make_text(std::move(joined));
}

outcome<value> first(heap& memory, const value& input, arguments& given) {
  JINJA_CHECK(parameters::bind("first", given, {}));
  if (auto* l = as_list(input); l && l->kind == list::sort::iterator)
    return l->next < l->items.size() ? l->items[l->next++] : value(undefined{});
  if (const auto* t = as_text(input))
    return t->bytes().empty() ? outcome<value>(undefined{})
                              : get_item(memory, input, std::int64_t{0}, nullptr);
  JINJA_TRY(const auto items, items_of(memory, input));
  return items.empty() ? value(undefined{}) : items.front();
}

outcome<value> last(heap& memory, const value& input, arguments& given) {
  JINJA_CHECK(parameters::bind("last", given, {}));
  if (const auto* l = as_list(input); l && l->kind == list::sort::iterator)
    return stop("'generator' object is not reversible");
  if (const auto* t = as_text(input))
    return t->bytes().empty() ? outcome<value>(undefined{})
                              : get_item(memory, input, std::int64_t{-1}, nullptr);
  JINJA_TRY(const auto items, items_of(memory, input));
  return items.empty() ? value(undefined{}) : items.back();
}

outcome<value> list_filter(heap& memory, const value& input, arguments& given) {
  JINJA_CHECK(parameters::bind("list", given, {}));
  JINJA_TRY(auto items, items_of(memory, input));
  return memory.make_list(std::move(items));
}

outcome<value> items_filter(heap& memory, const value& input, arguments& given) {
  JINJA_CHECK(parameters::bind("items", given, {}));
  std::vector<value> out;
  if (const auto* d = as_mapping(input)) {
    for (const auto& [key, what] : d->entries)
      if (memory.costs().spend())
        out.emplace_back(memory.make_list({key, what}, list::sort::tuple));
  } else if (!is_undefined(input)) {
    return stop("Can only get item pairs from a mapping.");
  }
  return memory.make_list(std::move(out), list::sort::iterator);
}

outcome<value> reverse(heap& memory, const value& input, arguments& given) {
  JINJA_CHECK(parameters::bind("reverse", given, {}));
  if (as_text(input))
    return get_slice(memory, input, none{}, none{}, std::int64_t{-1});
  const auto* l = as_list(input);
  const bool once = l && l->kind == list::sort::iterator;
  JINJA_TRY(auto items, items_of(memory, input));
  std::ranges::reverse(items);
  // What Python can reverse gives an iterator; the rest is made a list first.
  return memory.make_list(std::move(items), once ? list::sort::list : list::sort::iterator);
}

outcome<value> attribute(heap& memory, const value& input, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("attr", given, {"name"}, 1));
  JINJA_TRY(const auto name, p.string(0));
  if (!name)
    return stop("attr() needs a name");
  // Entries of a mapping are not attributes.
  if (as_mapping(input)) {
    JINJA_TRY(const auto code, find_method(input, *name));
    if (!code)
      return value(undefined{});
  }
  return get_attribute(memory, input, *name, nullptr);
}

outcome<value> map(heap& memory, const value& input, arguments& given) {
  std::vector<value> out;
  if (!truth(input))
    return memory.make_list(std::move(out), list::sort::iterator);
  const auto named = [&](std::string_view name) -> const value* {
    const auto found =
      std::ranges::find(given.named, name, [](const auto& pair) { return std::string_view(pair.first); });
    return found == given.named.end() ? nullptr : &found->second;
  };
  JINJA_TRY(const auto items, items_of(memory, input));
  if (given.positional.empty() && named("attribute")) {
    JINJA_TRY(const auto path, attribute_path::parse(memory, *named("attribute")));
    const auto* otherwise = named("default");
    if (given.named.size() != (otherwise ? 2U : 1U))
      return stop("map() takes no other keyword argument");
    for (const auto& item : items) {
      memory.costs().spend();
      JINJA_TRY(auto found, path.follow_or(memory, item, otherwise));
      out.push_back(std::move(found));
    }
    return memory.make_list(std::move(out), list::sort::iterator);
  }
  if (given.positional.empty() || !as_text(given.positional[0]))
    return stop("map requires a filter argument");
  const auto filter = find_filter(as_text(given.positional[0])->bytes());
  if (!filter)
    return stop(errc::unsupported, "map() names a filter that is not known");
  given.positional.erase(given.positional.begin());
  for (const auto& item : items) {
    memory.costs().spend();
    auto again = given;
    JINJA_TRY(auto made, filter(memory, item, again));
    out.push_back(std::move(made));
    JINJA_CHECK(memory.costs().check());
  }
  return memory.make_list(std::move(out), list::sort::iterator);
}

/// select, reject, selectattr and rejectattr.
template <bool ByAttribute, bool Keep>
outcome<value> select(heap& memory, const value& input, arguments& given) {
  std::vector<value> out;
  if (!truth(input))
    return memory.make_list(std::move(out), list::sort::iterator);
  value path_value = none{};
  if (ByAttribute) {
    if (given.positional.empty())
      return stop("Missing parameter for attribute name");
    path_value = given.positional[0];
    given.positional.erase(given.positional.begin());
  }
  JINJA_TRY(const auto path, attribute_path::parse(memory, path_value));
  test_code test = nullptr;
  if (!given.positional.empty()) {
    const auto* name = as_text(given.positional[0]);
    test = name ? find_test(name->bytes()) : nullptr;
    if (!test)
      return stop(errc::unsupported, "a filter names a test that is not known");
    given.positional.erase(given.positional.begin());
  }
  JINJA_TRY(const auto items, items_of(memory, input));
  for (const auto& item : items) {
    memory.costs().spend();
    JINJA_TRY(const auto what, path.follow(memory, item));
    bool holds = truth(what);
    if (test) {
      auto again = given;
      JINJA_TRY(holds, test(memory, what, again));
    }
    if (holds == Keep)
      out.push_back(item);
    JINJA_CHECK(memory.costs().check());
  }
  return memory.make_list(std::move(out), list::sort::iterator);
}

} // namespace

std::span<const method> sequence_filters() {
  static constexpr auto table = std::to_array<method>({
    {"attr", attribute},
    {"count", length},
    {"d", default_value},
    {"default", default_value},
    {"first", first},
    {"items", items_filter},
    {"join", join_filter},
    {"last", last},
    {"length", length},
    {"list", list_filter},
    {"map", map},
    {"reject", select<false, false>},
    {"rejectattr", select<true, false>},
    {"reverse", reverse},
    {"select", select<false, true>},
    {"selectattr", select<true, true>},
  });
  return table;
}

} // namespace godwit::jinja
