#pragma once

#include "actors/jinja/budget.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace godwit::jinja {

/// An immutable string, valid UTF-8.
class text {
 public:
  /// @param owner is told of the memory; nullptr for the constants of a template
  text(std::string bytes, bool safe, budget* owner);
  ~text();
  text(const text&) = delete;
  text& operator=(const text&) = delete;

  std::string_view bytes() const { return bytes_; }
  /// In characters.
  std::size_t length() const { return length_; }
  /// Every character is one byte, so that indices are offsets.
  bool is_ascii() const { return length_ == bytes_.size(); }
  /// Marked by `safe` or `escape`: what is added to it is escaped.
  bool is_safe() const { return safe_; }

 private:
  std::string bytes_;
  std::size_t length_;
  budget* owner_;
  bool safe_;
};

using text_ref = std::shared_ptr<const text>;

/// What a name or attribute that does not exist gives: prints as nothing, iterates over nothing, and faults
/// when it is used otherwise.
struct undefined {
  const std::string* name = nullptr; ///< what was looked for, if known; lives as long as the template
};

struct none {};

struct list;
struct dict;
struct function;
struct loop_state;

/// A value of the template language. Containers belong to the heap of the rendering and have reference
/// semantics as in Python; they may hold themselves.
using value =
  std::variant<undefined, none, bool, std::int64_t, double, text_ref, list*, dict*, function*, loop_state*>;

/// Python's list, tuple, range, the views of a dict, and iterators (which generators become: evaluated at
/// once, but read once and without a length, as in Python).
struct list {
  enum class sort : std::uint8_t { list, tuple, range, keys, values, items, iterator };

  std::vector<value> items;
  sort kind = sort::list;
  std::size_t next = 0;        ///< of an iterator
  std::int64_t bounds[3] = {}; ///< of a range: start, stop, step
};

/// Python's dict in insertion order, and the attributes of a `namespace()`.
struct dict {
  std::vector<std::pair<value, value>> entries;
  bool is_namespace = false;

  const value* find(std::string_view key) const;
  /// @param hash what hash_key() gave for the key
  const value* find_hashed(const std::string& hash) const;
  void set(const std::string& hash, const value& key, const value& what);
  bool erase(const std::string& hash);
  void clear();

 private:
  std::unordered_map<std::string, std::size_t> places_;
};

struct arguments;
struct macro_definition;
struct scope;
class heap;

/// A function of the types: `self` and the arguments of the call.
using method_code = outcome<value> (*)(heap&, const value& self, arguments&);

/// A callable value.
struct function {
  enum class sort : std::uint8_t {
    range,
    dict,
    make_namespace,
    raise_exception,
    strftime_now,
    method,
    macro
  };

  sort kind;
  value self = undefined{};                ///< of a method: the object it was taken from
  method_code code = nullptr;              ///< of a method
  const macro_definition* macro = nullptr; ///< of a macro, or the body of a call block
  scope* closure = nullptr;                ///< of a macro: where it was defined
};

/// The `loop` variable. A loop with a condition finds its items one by one, since the body may change what
/// the condition says.
struct loop_state {
  std::vector<value> items; ///< found so far
  std::size_t index = 0;
  std::function<outcome<bool>(loop_state&)>
    pull; ///< finds the next item, or says there is none; empty if all are there
  std::optional<std::vector<value>> last; ///< what changed() was last called with

  /// Finds items until there are `count` or no more. @returns whether there are
  outcome<bool> reach(std::size_t count);
};

/// Identifies a key of a dict: equal for keys that Python takes for equal (1, 1.0 and True).
/// @returns a fault for lists and dicts, which cannot be keys
outcome<std::string> hash_key(budget& costs, const value& key, int depth = 0);

/// Owns all values of one rendering and books their memory.
class heap {
 public:
  explicit heap(budget& costs) : costs_(costs) {}
  heap(const heap&) = delete;
  heap& operator=(const heap&) = delete;
  ~heap();

  budget& costs() { return costs_; }

  value make_text(std::string bytes, bool safe = false);
  list* make_list(std::vector<value> items, list::sort kind = list::sort::list);
  dict* make_dict(bool is_namespace = false);
  function* make_function(function made);
  loop_state* make_loop(loop_state made);

  /// Books an element that was added to a list or dict.
  void book(std::size_t bytes) { costs_.take(bytes); }

  static constexpr std::size_t element_bytes = sizeof(value);
  static constexpr std::size_t entry_bytes = 2 * sizeof(value) + 64;

 private:
  budget& costs_;
  std::deque<list> lists_;
  std::deque<dict> dicts_;
  std::deque<function> functions_;
  std::deque<loop_state> loops_;
};

inline bool is_undefined(const value& v) {
  return std::holds_alternative<undefined>(v);
}
inline bool is_none(const value& v) {
  return std::holds_alternative<none>(v);
}
inline const text* as_text(const value& v) {
  const auto* ref = std::get_if<text_ref>(&v);
  return ref ? ref->get() : nullptr;
}
inline list* as_list(const value& v) {
  const auto* p = std::get_if<list*>(&v);
  return p ? *p : nullptr;
}
inline dict* as_dict(const value& v) {
  const auto* p = std::get_if<dict*>(&v);
  return p ? *p : nullptr;
}
inline function* as_function(const value& v) {
  const auto* p = std::get_if<function*>(&v);
  return p ? *p : nullptr;
}
inline loop_state* as_loop(const value& v) {
  const auto* p = std::get_if<loop_state*>(&v);
  return p ? *p : nullptr;
}
/// A mapping: a dict that is not a namespace.
inline dict* as_mapping(const value& v) {
  auto* d = as_dict(v);
  return d && !d->is_namespace ? d : nullptr;
}

/// An int or bool as Python counts with them.
std::optional<std::int64_t> as_integer(const value& v);
/// An int, bool or float.
std::optional<double> as_number(const value& v);

/// The type as Python's messages name it: "str", "NoneType".
std::string_view type_name(const value& v);

/// The fault of using what does not exist: "'x' is undefined".
tl::unexpected<fault> undefined_fault(const value& v);

} // namespace godwit::jinja
