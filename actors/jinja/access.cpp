#include "actors/jinja/access.hpp"

#include "actors/jinja/operators.hpp"
#include "actors/text/utf8.hpp"

#include <algorithm>
#include <limits>

namespace godwit::jinja {

namespace {

/// How many items a loop has in all.
outcome<std::size_t> loop_length(loop_state& loop) {
  JINJA_CHECK(loop.reach(std::numeric_limits<std::size_t>::max()));
  return loop.items.size();
}

outcome<value> loop_attribute(loop_state& loop, std::string_view name, const std::string* known) {
  if (name == "index")
    return count_value(loop.index + 1);
  if (name == "index0")
    return count_value(loop.index);
  if (name == "first")
    return loop.index == 0;
  if (name == "previtem")
    return loop.index > 0 ? loop.items[loop.index - 1] : value(undefined{known});
  if (name == "last" || name == "nextitem") {
    JINJA_TRY(const bool more, loop.reach(loop.index + 2));
    if (name == "last")
      return !more;
    return more ? loop.items[loop.index + 1] : value(undefined{known});
  }
  if (name == "length" || name == "revindex" || name == "revindex0") {
    JINJA_TRY(const auto length, loop_length(loop));
    return count_value(name == "length" ? length : length - loop.index - (name == "revindex0" ? 1 : 0));
  }
  // Loops are never recursive here.
  if (name == "depth")
    return std::int64_t{1};
  if (name == "depth0")
    return std::int64_t{0};
  return undefined{known};
}

/// An index of Python, which counts from the end if it is negative.
std::optional<std::size_t> place(std::int64_t index, std::size_t size) {
  const auto n = static_cast<std::int64_t>(size);
  if (index < 0)
    index += n;
  if (index < 0 || index >= n)
    return std::nullopt;
  return static_cast<std::size_t>(index);
}

/// `object[key]` without methods; nothing where Python raises LookupError or TypeError.
outcome<std::optional<value>> entry(heap& memory, const value& object, const value& key) {
  if (const auto* d = as_mapping(object)) {
    const auto hash = hash_key(memory.costs(), key);
    const auto* found = hash ? d->find_hashed(*hash) : nullptr;
    return found ? std::optional(*found) : std::nullopt;
  }
  const auto index = as_integer(key);
  if (!index)
    return std::nullopt;
  if (const auto* t = as_text(object)) {
    const auto at = place(*index, t->length());
    if (!at)
      return std::nullopt;
    const auto rest = t->bytes().substr(offset_of(*t, *at));
    memory.costs().spend_bytes(t->is_ascii() ? 0 : t->bytes().size());
    return std::optional(memory.make_text(std::string(rest.substr(0, utf8::first(rest).size)), t->is_safe()));
  }
  if (const auto* l = as_list(object);
      l && (l->kind == list::sort::list || l->kind == list::sort::tuple || l->kind == list::sort::range)) {
    const auto at = place(*index, l->items.size());
    return at ? std::optional(l->items[*at]) : std::nullopt;
  }
  return std::nullopt;
}

outcome<std::optional<value>> method_of(heap& memory, const value& object, std::string_view name) {
  JINJA_TRY(const auto code, find_method(object, name));
  if (!code)
    return std::nullopt;
  return std::optional<value>(
    memory.make_function({.kind = function::sort::method, .self = object, .code = code}));
}

/// The bounds of a slice, as CPython's PySlice_AdjustIndices has them.
struct bounds {
  std::int64_t start;
  std::int64_t end;
  std::int64_t step;
  std::size_t count;

  std::size_t index(std::size_t n) const {
    return static_cast<std::size_t>(start + static_cast<std::int64_t>(n) * step);
  }
};

outcome<bounds> adjust(const value& start, const value& end, const value& step, std::size_t size) {
  const auto read = [](const value& v, std::int64_t otherwise) -> outcome<std::int64_t> {
    if (is_none(v))
      return otherwise;
    if (const auto i = as_integer(v))
      return *i;
    if (is_undefined(v))
      return undefined_fault(v);
    return stop("a slice needs integers, not '" + std::string(type_name(v)) + "'");
  };
  JINJA_TRY(auto by, read(step, 1));
  if (by == 0)
    return stop("the step of a slice cannot be zero");
  by = std::max(by, -std::numeric_limits<std::int64_t>::max());
  const auto n = static_cast<std::int64_t>(size);
  const std::int64_t low = by < 0 ? -1 : 0;
  const std::int64_t high = by < 0 ? n - 1 : n;
  const auto clamp = [&](std::int64_t i) { return std::clamp(i < 0 ? i + n : i, low, high); };
  JINJA_TRY(const auto from, read(start, by < 0 ? n : 0));
  JINJA_TRY(const auto to, read(end, by < 0 ? -n - 1 : n));
  const auto first = clamp(from);
  const auto last = clamp(to);
  std::int64_t count = 0;
  if (by < 0 && last < first)
    count = (first - last - 1) / -by + 1;
  else if (by > 0 && first < last)
    count = (last - first - 1) / by + 1;
  return bounds{first, last, by, static_cast<std::size_t>(count)};
}

/// A slice of a range is a range.
outcome<void> slice_range(const list& whole, const bounds& b, list& part) {
  const auto [start, end, step] = whole.bounds;
  const auto element = [start = start, step = step](std::int64_t i, std::int64_t& out) {
    return !__builtin_mul_overflow(i, step, &out) && !__builtin_add_overflow(start, out, &out);
  };
  const bool fits = element(b.start, part.bounds[0]) && element(b.end, part.bounds[1])
                    && !__builtin_mul_overflow(step, b.step, &part.bounds[2]);
  if (!fits)
    return stop("an integer does not fit into 64 bits");
  return {};
}

std::string slice_text(const text& t, const bounds& b) {
  std::string out;
  if (b.step == 1 || b.count <= 1) {
    if (b.count > 0) {
      const auto from = offset_of(t, static_cast<std::size_t>(b.start));
      const auto to = offset_of(t, static_cast<std::size_t>(b.start) + b.count);
      out = t.bytes().substr(from, to - from);
    }
    return out;
  }
  // Where each character starts, so that any step takes linear time.
  std::vector<std::size_t> starts;
  starts.reserve(t.length() + 1);
  for (std::size_t at = 0; at < t.bytes().size(); at += utf8::first(t.bytes().substr(at)).size)
    starts.push_back(at);
  starts.push_back(t.bytes().size());
  for (std::size_t n = 0; n < b.count; ++n) {
    const auto i = b.index(n);
    out += t.bytes().substr(starts[i], starts[i + 1] - starts[i]);
  }
  return out;
}

} // namespace

std::size_t offset_of(const text& t, std::size_t character) {
  if (t.is_ascii())
    return character;
  std::size_t at = 0;
  for (; character > 0; --character)
    at += utf8::first(t.bytes().substr(at)).size;
  return at;
}

outcome<value> get_attribute(
  heap& memory, const value& object, std::string_view name, const std::string* known) {
  if (is_undefined(object))
    return undefined_fault(object);
  if (auto* loop = as_loop(object); loop && name != "cycle" && name != "changed")
    return loop_attribute(*loop, name, known);
  if (const auto* d = as_dict(object); d && d->is_namespace) {
    const auto* found = d->find(name);
    return found ? *found : value(undefined{known});
  }
  // Python's internals are not for templates: they do not exist here.
  if (name.starts_with("__"))
    return value(undefined{known});
  JINJA_TRY(auto method, method_of(memory, object, name));
  if (method)
    return *method;
  if (const auto* d = as_mapping(object))
    if (const auto* found = d->find(name))
      return *found;
  return value(undefined{known});
}

outcome<value> get_item(heap& memory, const value& object, const value& key, const std::string* known) {
  if (is_undefined(object))
    return undefined_fault(object);
  JINJA_TRY(auto found, entry(memory, object, key));
  if (found)
    return *found;
  if (const auto* name = as_text(key))
    return get_attribute(memory, object, name->bytes(), known);
  return value(undefined{known});
}

outcome<value> get_slice(
  heap& memory, const value& object, const value& start, const value& end, const value& step) {
  if (const auto* t = as_text(object)) {
    JINJA_TRY(const auto b, adjust(start, end, step, t->length()));
    memory.costs().spend_bytes(t->bytes().size());
    return memory.make_text(slice_text(*t, b), t->is_safe());
  }
  const auto* l = as_list(object);
  if (l && (l->kind == list::sort::list || l->kind == list::sort::tuple || l->kind == list::sort::range)) {
    JINJA_TRY(const auto b, adjust(start, end, step, l->items.size()));
    std::vector<value> items;
    if (!memory.costs().has_room(b.count * heap::element_bytes))
      return value(none{});
    items.reserve(b.count);
    for (std::size_t n = 0; n < b.count; ++n)
      items.push_back(l->items[b.index(n)]);
    auto* part = memory.make_list(std::move(items), l->kind);
    if (l->kind == list::sort::range) {
      JINJA_CHECK(slice_range(*l, b, *part));
    }
    return part;
  }
  if (is_undefined(object))
    return undefined_fault(object);
  return stop("'" + std::string(type_name(object)) + "' cannot be sliced");
}

outcome<attribute_path> attribute_path::parse(heap& memory, const value& path) {
  attribute_path out;
  if (is_none(path))
    return out;
  const auto* t = as_text(path);
  if (!t) {
    out.steps_.push_back(path);
    return out;
  }
  auto rest = t->bytes();
  while (memory.costs().spend()) {
    const auto dot = rest.find('.');
    const auto part = rest.substr(0, dot);
    const bool number =
      !part.empty() && part.size() < 18 && part.find_first_not_of("0123456789") == part.npos;
    if (number)
      out.steps_.emplace_back(static_cast<std::int64_t>(std::stoll(std::string(part))));
    else
      out.steps_.push_back(memory.make_text(std::string(part)));
    if (dot == std::string_view::npos)
      break;
    rest.remove_prefix(dot + 1);
  }
  return out;
}

outcome<value> attribute_path::follow(heap& memory, value object) const {
  return follow_or(memory, std::move(object), nullptr);
}

outcome<value> attribute_path::follow_or(heap& memory, value object, const value* otherwise) const {
  for (const auto& step : steps_) {
    JINJA_TRY(object, get_item(memory, object, step, nullptr));
    if (otherwise && !is_none(*otherwise) && is_undefined(object))
      object = *otherwise;
  }
  return object;
}

} // namespace godwit::jinja
