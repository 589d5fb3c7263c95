#pragma once

#include "actors/jinja/arguments.hpp"
#include "actors/jinja/printing.hpp"
#include "actors/jinja/syntax.hpp"

#include <chrono>
#include <deque>

namespace godwit::jinja {

/// Variables of one level: the template, a loop's turn, a call of a macro.
struct scope {
  scope* parent = nullptr;
  std::vector<std::pair<symbol, value>> variables;
  bool captured = false; ///< a macro refers to it, so it stays

  void set(symbol id, value what);
  /// Here or further out. @param looked_at grows by the variables that were looked at
  const value* find(symbol id, std::size_t& looked_at) const;
};

/// Walks one template once. Names are looked up where they stand, then outwards to the place where the macro
/// was defined, then in the context; assignments stay in their level, as in Jinja2.
class interpreter {
 public:
  using time_point = std::chrono::system_clock::time_point;

  interpreter(const syntax_tree& tree, const limits& most, time_point now);

  heap& memory() { return heap_; }
  /// Makes a variable of the context known; ignored if the template does not name it.
  void define(const std::string& name, value what);
  outcome<std::string> run();

 private:
  enum class flow : std::uint8_t { normal, broken, continued };

  // Tags (interpreter.cpp)
  outcome<flow> execute(const block& statements);
  outcome<flow> execute_one(const statement& one);
  outcome<flow> run_tag(const data& tag);
  outcome<flow> run_tag(const output& tag);
  outcome<flow> run_tag(const for_loop& tag);
  outcome<flow> run_tag(const if_chain& tag);
  outcome<flow> run_tag(const assignment& tag);
  outcome<flow> run_tag(const attribute_assignment& tag);
  outcome<flow> run_tag(const block_assignment& tag);
  outcome<flow> run_tag(const macro_statement& tag);
  outcome<flow> run_tag(const call_block& tag);
  outcome<flow> run_tag(const filter_block& tag);
  outcome<flow> run_tag(const with_block& tag);
  outcome<flow> run_tag(const generation_block& tag);
  outcome<flow> run_tag(const break_statement&) { return flow::broken; }
  outcome<flow> run_tag(const continue_statement&) { return flow::continued; }
  outcome<flow> run_iterations(const for_loop& tag, loop_state& loop, loop_state* visible);
  outcome<bool> next_item(
    const for_loop& tag, const std::vector<value>& items, std::size_t& at, loop_state& loop);
  outcome<void> assign(const target& to, const value& what);
  outcome<void> assign_attribute(symbol object, const std::string& name, const value& what);
  /// Runs statements in a level of their own and catches what they print.
  outcome<value> capture(const block& statements);
  outcome<value> through_filters(const expression& filters, value input);
  outcome<void> write(std::string_view bytes);

  // Expressions (evaluate.cpp)
  outcome<value> evaluate(const expression& e);
  outcome<value> evaluate_or_none(const expression_ptr& e);
  outcome<value> kind_of(const constant& e) { return e.what; }
  outcome<value> kind_of(const variable& e);
  outcome<value> kind_of(const tuple_literal& e);
  outcome<value> kind_of(const list_literal& e);
  outcome<value> kind_of(const dict_literal& e);
  outcome<value> kind_of(const attribute_access& e);
  outcome<value> kind_of(const item_access& e);
  outcome<value> kind_of(const slice_access& e);
  outcome<value> kind_of(const call& e) { return run_call(e, nullptr); }
  outcome<value> kind_of(const filter_use& e);
  outcome<value> kind_of(const test_use& e);
  outcome<value> kind_of(const unary& e);
  outcome<value> kind_of(const arithmetic& e);
  outcome<value> kind_of(const concatenation& e);
  outcome<value> kind_of(const comparison_chain& e);
  outcome<value> kind_of(const logical& e);
  outcome<value> kind_of(const conditional& e);
  outcome<std::vector<value>> evaluate_all(const std::vector<expression_ptr>& all);
  outcome<arguments> evaluate_arguments(const call_arguments& given);

  // Calls (calls.cpp)
  outcome<value> run_call(const call& e, function* caller);
  outcome<value> call_value(const value& callee, arguments given, bool literal);
  outcome<value> call_macro(const function& callee, arguments given);
  outcome<value> make_range(const arguments& given);
  outcome<value> make_mapping(arguments given, bool is_namespace);
  outcome<value> format_time(const arguments& given);
  outcome<value> raise(const arguments& given, bool literal);

  // Levels
  scope* enter(scope* parent);
  void leave(scope* level);
  /// Makes a level the current one while it lives.
  class inside;
  tl::unexpected<fault> too_deep() const;

  const syntax_tree& tree_;
  budget costs_;
  heap heap_;
  time_point now_;
  std::vector<std::optional<value>> context_; ///< by symbol
  std::deque<scope> scopes_;
  std::vector<scope*> free_scopes_;
  scope* current_ = nullptr;
  text_builder* out_ = nullptr;
  value filter_input_ = undefined{}; ///< the text of the filter block being left
  int recursion_ = 0;
};

/// Makes a level of variables the current one while it lives.
class interpreter::inside {
 public:
  inside(interpreter& of, scope* parent) : of_(of), outer_(of.current_), level_(of.enter(parent)) {
    of_.current_ = level_;
  }
  ~inside() {
    of_.current_ = outer_;
    of_.leave(level_);
  }
  inside(const inside&) = delete;
  inside& operator=(const inside&) = delete;

 private:
  interpreter& of_;
  scope* outer_;
  scope* level_;
};

} // namespace godwit::jinja
