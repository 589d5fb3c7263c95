#include "actors/jinja/operators.hpp"

#include "actors/jinja/methods.hpp"
#include "actors/jinja/printing.hpp"
#include "actors/text/utf8.hpp"

#include <algorithm>

namespace godwit::jinja {

namespace {

bool equal_at(budget& costs, const value& left, const value& right, int depth);

bool equal_items(budget& costs, const list& left, const list& right, int depth) {
  if (left.items.size() != right.items.size())
    return false;
  for (std::size_t i = 0; i < left.items.size(); ++i)
    if (!equal_at(costs, left.items[i], right.items[i], depth + 1))
      return false;
  return true;
}

bool equal_entries(budget& costs, const dict& left, const dict& right, int depth) {
  if (left.entries.size() != right.entries.size())
    return false;
  for (const auto& [key, what] : left.entries) {
    const auto hash = hash_key(costs, key);
    const auto* other = hash ? right.find_hashed(*hash) : nullptr;
    if (!other || !equal_at(costs, what, *other, depth + 1))
      return false;
  }
  return true;
}

/// Exact comparison of an int and a float; long double holds both.
long double wide(const value& v) {
  if (const auto* d = std::get_if<double>(&v))
    return *d;
  return static_cast<long double>(*as_integer(v));
}

bool equal_at(budget& costs, const value& left, const value& right, int depth) {
  if (!costs.spend())
    return false;
  if (depth > costs.most().nesting)
    return costs.refuse_nesting();
  if (as_number(left) && as_number(right))
    return wide(left) == wide(right);
  if (const auto *a = as_text(left), *b = as_text(right); a && b) {
    costs.spend_bytes(a->bytes().size());
    return a->bytes() == b->bytes();
  }
  if (const auto *a = as_list(left), *b = as_list(right); a && b) {
    const bool compared =
      a->kind == b->kind && a->kind != list::sort::iterator && a->kind != list::sort::values;
    return a == b || (compared && equal_items(costs, *a, *b, depth));
  }
  if (const auto *a = as_dict(left), *b = as_dict(right); a && b)
    return a == b || (!a->is_namespace && !b->is_namespace && equal_entries(costs, *a, *b, depth));
  if (as_function(left) || as_loop(left))
    return as_function(left) == as_function(right) && as_loop(left) == as_loop(right);
  return left.index() == right.index() && (is_none(left) || is_undefined(left));
}

tl::unexpected<fault> unlike(std::string_view what, const value& left, const value& right) {
  if (is_undefined(left))
    return undefined_fault(left);
  if (is_undefined(right))
    return undefined_fault(right);
  return stop(std::string(what) + " is not possible between '" + std::string(type_name(left)) + "' and '"
              + std::string(type_name(right)) + "'");
}

outcome<bool> less_at(budget& costs, const value& left, const value& right, int depth) {
  costs.spend();
  if (depth > costs.most().nesting)
    return costs.refuse_nesting();
  if (as_number(left) && as_number(right))
    return wide(left) < wide(right);
  if (const auto *a = as_text(left), *b = as_text(right); a && b) {
    costs.spend_bytes(std::min(a->bytes().size(), b->bytes().size()));
    return a->bytes() < b->bytes(); // the order of UTF-8 is that of the code points
  }
  const auto *a = as_list(left), *b = as_list(right);
  if (a && b && a->kind == b->kind && (a->kind == list::sort::list || a->kind == list::sort::tuple)) {
    const auto both = std::min(a->items.size(), b->items.size());
    for (std::size_t i = 0; i < both && !costs.used_up(); ++i)
      if (!equal(costs, a->items[i], b->items[i]))
        return less_at(costs, a->items[i], b->items[i], depth + 1);
    return a->items.size() < b->items.size();
  }
  return unlike("an order", left, right);
}

} // namespace

bool truth(const value& v) {
  struct visitor {
    bool operator()(undefined) const { return false; }
    bool operator()(none) const { return false; }
    bool operator()(bool b) const { return b; }
    bool operator()(std::int64_t i) const { return i != 0; }
    bool operator()(double d) const { return d != 0; }
    bool operator()(const text_ref& t) const { return !t->bytes().empty(); }
    bool operator()(const list* l) const { return l->kind == list::sort::iterator || !l->items.empty(); }
    bool operator()(const dict* d) const { return d->is_namespace || !d->entries.empty(); }
    bool operator()(const function*) const { return true; }
    bool operator()(const loop_state*) const { return true; }
  };
  return std::visit(visitor{}, v);
}

bool equal(budget& costs, const value& left, const value& right) {
  return equal_at(costs, left, right, 0);
}

outcome<bool> less(budget& costs, const value& left, const value& right) {
  return less_at(costs, left, right, 0);
}

outcome<bool> compare(heap& memory, comparison how, const value& left, const value& right) {
  auto& costs = memory.costs();
  // Every other order is `less` of the operands, perhaps exchanged; equality is asked first, as NaN has no
  // order.
  switch (how) {
  case comparison::equal:
    return equal(costs, left, right);
  case comparison::not_equal:
    return !equal(costs, left, right);
  case comparison::less:
    return less(costs, left, right);
  case comparison::greater:
    return less(costs, right, left);
  case comparison::less_equal: {
    JINJA_TRY(const bool is_less, less(costs, left, right));
    return is_less || equal(costs, left, right);
  }
  case comparison::greater_equal: {
    JINJA_TRY(const bool is_less, less(costs, right, left));
    return is_less || equal(costs, left, right);
  }
  case comparison::in:
    return contains(memory, right, left);
  case comparison::not_in: {
    JINJA_TRY(const bool found, contains(memory, right, left));
    return !found;
  }
  }
  return false;
}

outcome<bool> contains(heap& memory, const value& container, const value& item) {
  if (const auto* whole = as_text(container)) {
    const auto* part = as_text(item);
    if (!part)
      return stop("'in <string>' requires a string, not '" + std::string(type_name(item)) + "'");
    memory.costs().spend_bytes(whole->bytes().size());
    return find_bytes(whole->bytes(), part->bytes()) != std::string_view::npos;
  }
  if (const auto* mapping = as_mapping(container)) {
    JINJA_TRY(const auto hash, hash_key(memory.costs(), item));
    return mapping->find_hashed(hash) != nullptr;
  }
  if (auto* items = as_list(container)) {
    const bool once = items->kind == list::sort::iterator;
    for (std::size_t i = once ? items->next : 0; i < items->items.size(); ++i) {
      if (once)
        items->next = i + 1;
      if (equal(memory.costs(), items->items[i], item))
        return true;
      if (memory.costs().used_up())
        break;
    }
    return false;
  }
  if (is_undefined(container))
    return false;
  return stop("'in' cannot look into '" + std::string(type_name(container)) + "'");
}

outcome<std::size_t> length_of(const value& v) {
  if (const auto* t = as_text(v))
    return t->length();
  if (const auto* l = as_list(v); l && l->kind != list::sort::iterator)
    return l->items.size();
  if (const auto* d = as_mapping(v))
    return d->entries.size();
  if (const auto* loop = as_loop(v))
    return loop->items.size();
  if (is_undefined(v))
    return std::size_t{0};
  return stop("'" + std::string(type_name(v)) + "' has no length");
}

bool is_iterable(const value& v) {
  return as_text(v) || as_list(v) || as_mapping(v) || as_loop(v) || is_undefined(v);
}

outcome<std::vector<value>> items_of(heap& memory, const value& v) {
  std::vector<value> items;
  if (auto* l = as_list(v)) {
    memory.costs().spend(l->items.size() / 4);
    if (l->kind != list::sort::iterator)
      return l->items;
    items.assign(l->items.begin() + static_cast<std::ptrdiff_t>(l->next), l->items.end());
    l->next = l->items.size();
    return items;
  }
  if (const auto* t = as_text(v)) {
    if (!memory.costs().has_room(t->length() * (heap::element_bytes + sizeof(text) + 16)))
      return items;
    items.reserve(t->length());
    for (auto rest = t->bytes(); !rest.empty() && memory.costs().spend();) {
      const auto size = utf8::first(rest).size;
      items.push_back(memory.make_text(std::string(rest.substr(0, size))));
      rest.remove_prefix(size);
    }
    return items;
  }
  if (const auto* d = as_mapping(v)) {
    items.reserve(d->entries.size());
    for (const auto& entry : d->entries)
      items.push_back(entry.first);
    memory.costs().spend(items.size() / 4);
    return items;
  }
  if (is_undefined(v))
    return items;
  return stop("'" + std::string(type_name(v)) + "' is not iterable");
}

std::string escape_html(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '\'':
      out += "&#39;";
      break;
    case '"':
      out += "&#34;";
      break;
    default:
      out.push_back(c);
    }
  }
  return out;
}

} // namespace godwit::jinja
