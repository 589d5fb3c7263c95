#include "actors/jinja/value.hpp"

#include "actors/text/utf8.hpp"

#include <cmath>
#include <cstring>

namespace godwit::jinja {

text::text(std::string bytes, bool safe, budget* owner)
  : bytes_(std::move(bytes)), length_(utf8::length(bytes_)), owner_(owner), safe_(safe) {
  if (owner_)
    owner_->take(bytes_.size() + sizeof(text));
}

text::~text() {
  if (owner_)
    owner_->give_back(bytes_.size() + sizeof(text));
}

const value* dict::find_hashed(const std::string& hash) const {
  const auto found = places_.find(hash);
  return found == places_.end() ? nullptr : &entries[found->second].second;
}

const value* dict::find(std::string_view key) const {
  std::string hash = "s";
  hash += key;
  return find_hashed(hash);
}

void dict::set(const std::string& hash, const value& key, const value& what) {
  const auto [place, added] = places_.try_emplace(hash, entries.size());
  if (added)
    entries.emplace_back(key, what);
  else
    entries[place->second].second = what;
}

bool dict::erase(const std::string& hash) {
  const auto found = places_.find(hash);
  if (found == places_.end())
    return false;
  const auto gone = found->second;
  places_.erase(found);
  entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(gone));
  for (auto& [other, place] : places_)
    place -= place > gone ? 1 : 0;
  return true;
}

void dict::clear() {
  entries.clear();
  places_.clear();
}

outcome<bool> loop_state::reach(std::size_t count) {
  while (items.size() < count && pull) {
    JINJA_TRY(const bool more, pull(*this));
    if (!more)
      pull = nullptr;
  }
  return items.size() >= count;
}

outcome<std::string> hash_key(budget& costs, const value& key, int depth) {
  if (const auto* t = as_text(key)) {
    costs.spend_bytes(t->bytes().size());
    return "s" + std::string(t->bytes());
  }
  if (const auto integer = as_integer(key))
    return "i" + std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&key)) {
    // A float that is a whole number is the same key as the int.
    if (std::abs(*number) < 9e18 && std::trunc(*number) == *number)
      return "i" + std::to_string(static_cast<std::int64_t>(*number));
    std::string hash(1 + sizeof(double), 'd');
    std::memcpy(hash.data() + 1, number, sizeof(double));
    return hash;
  }
  if (is_none(key))
    return std::string("n");
  if (is_undefined(key))
    return std::string("u");
  if (const auto* items = as_list(key); items && items->kind == list::sort::tuple) {
    if (depth > 8)
      return stop("a key is nested too deeply");
    std::string hash = "t";
    for (const auto& item : items->items) {
      JINJA_TRY(const auto part, hash_key(costs, item, depth + 1));
      if (!costs.spend() || !costs.spend_bytes(part.size()) || !costs.has_room(hash.size()))
        return costs.check().map([] { return std::string(); });
      hash += std::to_string(part.size()) + ":" + part;
    }
    return hash;
  }
  return stop("unhashable type: '" + std::string(type_name(key)) + "'");
}

heap::~heap() {
  // Strings give their memory back to the budget, so they go while it is known to be there.
  lists_.clear();
  dicts_.clear();
  functions_.clear();
  loops_.clear();
}

value heap::make_text(std::string bytes, bool safe) {
  costs_.spend_bytes(bytes.size());
  return std::make_shared<const text>(std::move(bytes), safe, &costs_);
}

list* heap::make_list(std::vector<value> items, list::sort kind) {
  costs_.take(sizeof(list) + items.size() * element_bytes);
  costs_.spend(items.size() / 4);
  auto& made = lists_.emplace_back();
  made.items = std::move(items);
  made.kind = kind;
  return &made;
}

dict* heap::make_dict(bool is_namespace) {
  costs_.take(sizeof(dict));
  auto& made = dicts_.emplace_back();
  made.is_namespace = is_namespace;
  return &made;
}

function* heap::make_function(function made) {
  costs_.take(sizeof(function));
  return &functions_.emplace_back(std::move(made));
}

loop_state* heap::make_loop(loop_state made) {
  costs_.take(sizeof(loop_state) + made.items.size() * element_bytes);
  return &loops_.emplace_back(std::move(made));
}

std::optional<std::int64_t> as_integer(const value& v) {
  if (const auto* i = std::get_if<std::int64_t>(&v))
    return *i;
  if (const auto* b = std::get_if<bool>(&v))
    return *b ? 1 : 0;
  return std::nullopt;
}

std::optional<double> as_number(const value& v) {
  if (const auto* d = std::get_if<double>(&v))
    return *d;
  if (const auto i = as_integer(v))
    return static_cast<double>(*i);
  return std::nullopt;
}

std::string_view type_name(const value& v) {
  struct names {
    std::string_view operator()(undefined) const { return "Undefined"; }
    std::string_view operator()(none) const { return "NoneType"; }
    std::string_view operator()(bool) const { return "bool"; }
    std::string_view operator()(std::int64_t) const { return "int"; }
    std::string_view operator()(double) const { return "float"; }
    std::string_view operator()(const text_ref& t) const { return t->is_safe() ? "Markup" : "str"; }
    std::string_view operator()(const list* l) const {
      switch (l->kind) {
      case list::sort::list:
        return "list";
      case list::sort::tuple:
        return "tuple";
      case list::sort::range:
        return "range";
      case list::sort::keys:
        return "dict_keys";
      case list::sort::values:
        return "dict_values";
      case list::sort::items:
        return "dict_items";
      case list::sort::iterator:
        return "generator";
      }
      return "list";
    }
    std::string_view operator()(const dict* d) const { return d->is_namespace ? "Namespace" : "dict"; }
    std::string_view operator()(const function* f) const {
      return f->kind == function::sort::macro ? "Macro" : "function";
    }
    std::string_view operator()(const loop_state*) const { return "LoopContext"; }
  };
  return std::visit(names{}, v);
}

tl::unexpected<fault> undefined_fault(const value& v) {
  const auto* u = std::get_if<undefined>(&v);
  if (u && u->name)
    return stop("'" + *u->name + "' is undefined");
  return stop("an undefined value is used");
}

} // namespace godwit::jinja
