#include "actors/jinja/methods.hpp"

#include "actors/jinja/operators.hpp"
#include "actors/jinja/sorting.hpp"

#include <algorithm>
#include <array>

namespace godwit::jinja {

namespace {

std::vector<value>& elements(const value& self) {
  return as_list(self)->items;
}

/// An index of insert() or pop() that counts from the end if it is negative.
std::int64_t from_end(std::int64_t index, std::size_t size) {
  return index < 0 ? index + static_cast<std::int64_t>(size) : index;
}

outcome<std::size_t> position_of(heap& memory, const value& self, const value& item) {
  const auto& items = elements(self);
  for (std::size_t i = 0; i < items.size() && !memory.costs().used_up(); ++i)
    if (equal(memory.costs(), items[i], item))
      return i;
  return stop("the element is not in the list");
}

outcome<value> list_append(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("append", given, {"/object"}, 1));
  memory.book(heap::element_bytes);
  elements(self).push_back(*p[0]);
  return none{};
}

outcome<value> list_extend(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("extend", given, {"/iterable"}, 1));
  JINJA_TRY(const auto more, items_of(memory, *p[0]));
  memory.book(more.size() * heap::element_bytes);
  elements(self).insert(elements(self).end(), more.begin(), more.end());
  return none{};
}

outcome<value> list_insert(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("insert", given, {"/index", "/object"}, 2));
  JINJA_TRY(const auto index, p.integer(0, 0));
  auto& items = elements(self);
  const auto at =
    std::clamp<std::int64_t>(from_end(index, items.size()), 0, static_cast<std::int64_t>(items.size()));
  memory.book(heap::element_bytes);
  memory.costs().spend(items.size() / 16);
  items.insert(items.begin() + at, *p[1]);
  return none{};
}

outcome<value> list_pop(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("pop", given, {"/index"}));
  JINJA_TRY(const auto index, p.integer(0, -1));
  auto& items = elements(self);
  const auto at = from_end(index, items.size());
  if (at < 0 || at >= static_cast<std::int64_t>(items.size()))
    return stop("pop index out of range");
  auto out = items[static_cast<std::size_t>(at)];
  memory.costs().spend(items.size() / 16);
  items.erase(items.begin() + at);
  return out;
}

outcome<value> list_remove(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("remove", given, {"/object"}, 1));
  JINJA_TRY(const auto at, position_of(memory, self, *p[0]));
  elements(self).erase(elements(self).begin() + static_cast<std::ptrdiff_t>(at));
  return none{};
}

outcome<value> list_clear(heap&, const value& self, arguments& given) {
  JINJA_CHECK(parameters::bind("clear", given, {}));
  elements(self).clear();
  return none{};
}

outcome<value> list_copy(heap& memory, const value& self, arguments& given) {
  JINJA_CHECK(parameters::bind("copy", given, {}));
  return memory.make_list(elements(self));
}

outcome<value> list_reverse(heap& memory, const value& self, arguments& given) {
  JINJA_CHECK(parameters::bind("reverse", given, {}));
  memory.costs().spend(elements(self).size() / 4);
  std::ranges::reverse(elements(self));
  return none{};
}

outcome<value> list_sort(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("sort", given, {"reverse"}));
  const auto items = elements(self);
  JINJA_TRY(elements(self), sorted(memory.costs(), items, items, p.flag(0, false)));
  return none{};
}

outcome<value> list_index(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("index", given, {"/object"}, 1));
  JINJA_TRY(const auto at, position_of(memory, self, *p[0]));
  return count_value(at);
}

outcome<value> list_count(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("count", given, {"/object"}, 1));
  return count_value(static_cast<std::size_t>(std::ranges::count_if(
    elements(self), [&](const value& item) { return equal(memory.costs(), item, *p[0]); })));
}

dict& mapping(const value& self) {
  return *as_dict(self);
}

outcome<value> dict_get(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("get", given, {"/key", "/default"}, 1));
  JINJA_TRY(const auto hash, hash_key(memory.costs(), *p[0]));
  if (const auto* found = mapping(self).find_hashed(hash))
    return *found;
  return p[1] ? *p[1] : value(none{});
}

template <list::sort Kind>
outcome<value> dict_view(heap& memory, const value& self, arguments& given) {
  JINJA_CHECK(parameters::bind("dict view", given, {}));
  std::vector<value> out;
  for (const auto& [key, what] : mapping(self).entries) {
    if (Kind == list::sort::keys)
      out.push_back(key);
    else if (Kind == list::sort::values)
      out.push_back(what);
    else
      out.emplace_back(memory.make_list({key, what}, list::sort::tuple));
    if (!memory.costs().spend())
      break;
  }
  return memory.make_list(std::move(out), Kind);
}

outcome<value> dict_pop(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("pop", given, {"/key", "/default"}, 1));
  JINJA_TRY(const auto hash, hash_key(memory.costs(), *p[0]));
  if (const auto* found = mapping(self).find_hashed(hash)) {
    auto out = *found;
    memory.costs().spend(mapping(self).entries.size()); // places of all later entries move
    mapping(self).erase(hash);
    return out;
  }
  if (p[1])
    return *p[1];
  return stop("pop() finds no such key");
}

outcome<value> dict_setdefault(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("setdefault", given, {"/key", "/default"}, 1));
  JINJA_TRY(const auto hash, hash_key(memory.costs(), *p[0]));
  if (const auto* found = mapping(self).find_hashed(hash))
    return *found;
  const auto what = p[1] ? *p[1] : value(none{});
  memory.book(heap::entry_bytes);
  mapping(self).set(hash, *p[0], what);
  return what;
}

outcome<value> dict_update(heap& memory, const value& self, arguments& given) {
  const auto named = std::exchange(given.named, {});
  JINJA_TRY(const auto p, parameters::bind("update", given, {"/other"}));
  if (p[0]) {
    JINJA_CHECK(update_dict(memory, mapping(self), *p[0]));
  }
  for (const auto& [name, what] : named) {
    memory.book(heap::entry_bytes);
    mapping(self).set("s" + name, memory.make_text(name), what);
  }
  return none{};
}

outcome<value> dict_copy(heap& memory, const value& self, arguments& given) {
  JINJA_CHECK(parameters::bind("copy", given, {}));
  auto* out = memory.make_dict();
  JINJA_CHECK(update_dict(memory, *out, self));
  return out;
}

outcome<value> dict_clear(heap&, const value& self, arguments& given) {
  JINJA_CHECK(parameters::bind("clear", given, {}));
  mapping(self).clear();
  return none{};
}

outcome<value> dict_popitem(heap& memory, const value& self, arguments& given) {
  JINJA_CHECK(parameters::bind("popitem", given, {}));
  auto& entries = mapping(self).entries;
  if (entries.empty())
    return stop("popitem() finds an empty dictionary");
  const auto [key, what] = entries.back();
  JINJA_TRY(const auto hash, hash_key(memory.costs(), key));
  memory.costs().spend(entries.size());
  mapping(self).erase(hash);
  return memory.make_list({key, what}, list::sort::tuple);
}

outcome<value> loop_cycle(heap&, const value& self, arguments& given) {
  if (given.positional.empty() || !given.named.empty())
    return stop("cycle() needs values to choose from");
  return given.positional[as_loop(self)->index % given.positional.size()];
}

outcome<value> loop_changed(heap& memory, const value& self, arguments& given) {
  auto& last = as_loop(self)->last;
  const bool same = last && std::ranges::equal(*last, given.positional, [&](const value& a, const value& b) {
    return equal(memory.costs(), a, b);
  });
  last = given.positional;
  return !same;
}

} // namespace

outcome<void> update_dict(heap& memory, dict& target, const value& other) {
  const auto put = [&](const value& key, const value& what) -> outcome<void> {
    JINJA_TRY(const auto hash, hash_key(memory.costs(), key));
    memory.book(heap::entry_bytes);
    memory.costs().spend();
    target.set(hash, key, what);
    return {};
  };
  if (const auto* source = as_mapping(other)) {
    for (const auto& [key, what] : std::vector(source->entries)) {
      JINJA_CHECK(put(key, what));
    }
    return {};
  }
  JINJA_TRY(const auto pairs, items_of(memory, other));
  for (const auto& pair : pairs) {
    JINJA_TRY(const auto parts, items_of(memory, pair));
    if (parts.size() != 2)
      return stop("a dictionary is made of pairs");
    JINJA_CHECK(put(parts[0], parts[1]));
  }
  return {};
}

std::span<const method> list_methods() {
  static constexpr auto table = std::to_array<method>({
    {"append", list_append},
    {"clear", list_clear},
    {"copy", list_copy},
    {"count", list_count},
    {"extend", list_extend},
    {"index", list_index},
    {"insert", list_insert},
    {"pop", list_pop},
    {"remove", list_remove},
    {"reverse", list_reverse},
    {"sort", list_sort},
  });
  return table;
}

std::span<const method> tuple_methods() {
  static constexpr auto table = std::to_array<method>({{"count", list_count}, {"index", list_index}});
  return table;
}

std::span<const method> dict_methods() {
  static constexpr auto table = std::to_array<method>({
    {"clear", dict_clear},
    {"copy", dict_copy},
    {"get", dict_get},
    {"items", dict_view<list::sort::items>},
    {"keys", dict_view<list::sort::keys>},
    {"pop", dict_pop},
    {"popitem", dict_popitem},
    {"setdefault", dict_setdefault},
    {"update", dict_update},
    {"values", dict_view<list::sort::values>},
  });
  return table;
}

std::span<const method> loop_methods() {
  static constexpr auto table = std::to_array<method>({{"changed", loop_changed}, {"cycle", loop_cycle}});
  return table;
}

} // namespace godwit::jinja
