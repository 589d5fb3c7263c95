#include "actors/jinja/interpreter.hpp"

#include "actors/jinja/access.hpp"

#include <algorithm>

namespace godwit::jinja {

void scope::set(symbol id, value what) {
  for (auto& [known, held] : variables) {
    if (known == id) {
      held = std::move(what);
      return;
    }
  }
  variables.emplace_back(id, std::move(what));
}

const value* scope::find(symbol id, std::size_t& looked_at) const {
  for (const auto* level = this; level; level = level->parent) {
    looked_at += level->variables.size();
    for (const auto& [known, held] : level->variables)
      if (known == id)
        return &held;
  }
  return nullptr;
}

interpreter::interpreter(const syntax_tree& tree, const limits& most, time_point now)
  : tree_(tree), costs_(most), heap_(costs_), now_(now), context_(tree.names.size()) {
  const auto global = [&](const char* name, function::sort kind) {
    define(name, heap_.make_function({.kind = kind}));
  };
  global("range", function::sort::range);
  global("dict", function::sort::dict);
  global("namespace", function::sort::make_namespace);
  global("raise_exception", function::sort::raise_exception);
  global("strftime_now", function::sort::strftime_now);
}

void interpreter::define(const std::string& name, value what) {
  const auto found = std::ranges::find_if(tree_.names, [&](const auto& known) { return *known == name; });
  if (found != tree_.names.end())
    context_[static_cast<std::size_t>(found - tree_.names.begin())] = std::move(what);
}

outcome<std::string> interpreter::run() {
  text_builder out(costs_);
  out_ = &out;
  const inside level(*this, nullptr);
  JINJA_CHECK(execute(tree_.body));
  JINJA_CHECK(costs_.check());
  return out.finish();
}

scope* interpreter::enter(scope* parent) {
  if (free_scopes_.empty()) {
    costs_.take(sizeof(scope));
    free_scopes_.push_back(&scopes_.emplace_back());
  }
  auto* level = free_scopes_.back();
  free_scopes_.pop_back();
  level->parent = parent;
  return level;
}

void interpreter::leave(scope* level) {
  if (level->captured)
    return;
  level->variables.clear();
  free_scopes_.push_back(level);
}

tl::unexpected<fault> interpreter::too_deep() const {
  return stop(errc::too_large, "macros and expressions call each other more than "
                                 + std::to_string(costs_.most().recursion) + " levels deep");
}

outcome<void> interpreter::write(std::string_view bytes) {
  if (out_->bytes().size() + bytes.size() > costs_.most().output)
    return stop(errc::too_large,
      "the template renders to more than " + std::to_string(costs_.most().output) + " bytes");
  out_->append(bytes);
  return {};
}

outcome<interpreter::flow> interpreter::execute(const block& statements) {
  for (const auto& one : statements) {
    JINJA_TRY(const auto went, execute_one(one));
    if (went != flow::normal)
      return went;
  }
  return flow::normal;
}

outcome<interpreter::flow> interpreter::execute_one(const statement& one) {
  costs_.spend();
  if (recursion_ >= costs_.most().recursion)
    return stop(errc::too_large, too_deep().value().message, one.line);
  ++recursion_;
  auto went = std::visit([&](const auto& tag) { return run_tag(tag); }, one.kind);
  --recursion_;
  if (went && costs_.used_up())
    went = tl::unexpected(costs_.check().error());
  if (!went && went.error().line == 0)
    went.error().line = one.line;
  return went;
}

outcome<interpreter::flow> interpreter::run_tag(const data& tag) {
  JINJA_CHECK(write(tag.bytes));
  return flow::normal;
}

outcome<interpreter::flow> interpreter::run_tag(const output& tag) {
  JINJA_TRY(const auto what, evaluate(*tag.what));
  std::string scratch;
  JINJA_CHECK(write(printed(costs_, what, scratch)));
  return flow::normal;
}

outcome<interpreter::flow> interpreter::run_tag(const if_chain& tag) {
  for (const auto& [condition, body] : tag.branches) {
    JINJA_TRY(const auto holds, evaluate(*condition));
    if (truth(holds))
      return execute(body);
  }
  return execute(tag.otherwise);
}

outcome<interpreter::flow> interpreter::run_tag(const for_loop& tag) {
  JINJA_TRY(const auto source, evaluate(*tag.items));
  JINJA_TRY(auto items, items_of(heap_, source));
  loop_state own;
  std::size_t at = 0;
  if (tag.condition) {
    auto* outer = current_;
    own.pull = [this, &tag, &items, &at, outer](loop_state& loop) {
      const auto before = std::exchange(current_, outer);
      auto more = next_item(tag, items, at, loop);
      current_ = before;
      return more;
    };
  } else {
    own.items = std::move(items);
  }
  if (!tag.uses_loop)
    return run_iterations(tag, own, nullptr);
  auto* loop = heap_.make_loop(std::move(own));
  auto went = run_iterations(tag, *loop, loop);
  loop->pull = nullptr; // it refers to this call; the loop variable may live on in a namespace
  return went;
}

outcome<bool> interpreter::next_item(
  const for_loop& tag, const std::vector<value>& items, std::size_t& at, loop_state& loop) {
  while (at < items.size()) {
    const auto& item = items[at++];
    const inside level(*this, current_);
    JINJA_CHECK(assign(tag.each, item));
    JINJA_TRY(const auto holds, evaluate(*tag.condition));
    if (truth(holds)) {
      loop.items.push_back(item);
      return true;
    }
  }
  return false;
}

outcome<interpreter::flow> interpreter::run_iterations(
  const for_loop& tag, loop_state& loop, loop_state* visible) {
  for (loop.index = 0;; ++loop.index) {
    JINJA_TRY(const bool more, loop.reach(loop.index + 1));
    if (!more)
      break;
    const inside level(*this, current_);
    if (visible)
      current_->set(known::loop, visible);
    JINJA_CHECK(assign(tag.each, loop.items[loop.index]));
    JINJA_TRY(const auto went, execute(tag.body));
    if (went == flow::broken)
      return flow::normal;
    costs_.spend();
    JINJA_CHECK(costs_.check());
  }
  if (loop.index > 0)
    return flow::normal;
  const inside level(*this, current_);
  return execute(tag.otherwise);
}

outcome<void> interpreter::assign(const target& to, const value& what) {
  if (!to.is_tuple) {
    costs_.spend(current_->variables.size() / 16);
    current_->set(to.id, what);
    return {};
  }
  JINJA_TRY(const auto items, items_of(heap_, what));
  if (items.size() != to.parts.size())
    return stop("a value of " + std::to_string(items.size()) + " parts is assigned to "
                + std::to_string(to.parts.size()) + " names");
  for (std::size_t i = 0; i < items.size(); ++i) {
    JINJA_CHECK(assign(to.parts[i], items[i]));
  }
  return {};
}

outcome<void> interpreter::assign_attribute(symbol object, const std::string& name, const value& what) {
  JINJA_TRY(const auto holder, kind_of(variable{object}));
  auto* d = as_dict(holder);
  if (!d || !d->is_namespace)
    return stop("cannot assign attribute on non-namespace object");
  heap_.book(heap::entry_bytes);
  d->set("s" + name, heap_.make_text(name), what);
  return {};
}

outcome<interpreter::flow> interpreter::run_tag(const assignment& tag) {
  JINJA_TRY(const auto what, evaluate(*tag.what));
  JINJA_CHECK(assign(tag.to, what));
  return flow::normal;
}

outcome<interpreter::flow> interpreter::run_tag(const attribute_assignment& tag) {
  JINJA_TRY(const auto what, evaluate(*tag.what));
  JINJA_CHECK(assign_attribute(tag.object, tag.attribute, what));
  return flow::normal;
}

outcome<value> interpreter::capture(const block& statements) {
  text_builder caught(costs_);
  auto* outer = std::exchange(out_, &caught);
  const inside level(*this, current_);
  auto went = execute(statements);
  out_ = outer;
  if (!went)
    return tl::unexpected(std::move(went.error()));
  return heap_.make_text(caught.finish());
}

outcome<value> interpreter::through_filters(const expression& filters, value input) {
  const auto outer = std::exchange(filter_input_, std::move(input));
  auto out = evaluate(filters);
  filter_input_ = outer;
  return out;
}

outcome<interpreter::flow> interpreter::run_tag(const block_assignment& tag) {
  JINJA_TRY(auto what, capture(tag.body));
  if (tag.filter) {
    JINJA_TRY(what, through_filters(*tag.filter, what));
  }
  if (tag.attribute) {
    JINJA_CHECK(assign_attribute(tag.attribute->first, tag.attribute->second, what));
  } else {
    JINJA_CHECK(assign(tag.to, what));
  }
  return flow::normal;
}

outcome<interpreter::flow> interpreter::run_tag(const macro_statement& tag) {
  for (auto* level = current_; level && !level->captured; level = level->parent)
    level->captured = true;
  current_->set(tag.macro->id,
    heap_.make_function({.kind = function::sort::macro, .macro = tag.macro.get(), .closure = current_}));
  return flow::normal;
}

outcome<interpreter::flow> interpreter::run_tag(const call_block& tag) {
  for (auto* level = current_; level && !level->captured; level = level->parent)
    level->captured = true;
  auto* caller =
    heap_.make_function({.kind = function::sort::macro, .macro = tag.body.get(), .closure = current_});
  JINJA_TRY(const auto what, run_call(std::get<call>(tag.what->kind), caller));
  std::string scratch;
  JINJA_CHECK(write(printed(costs_, what, scratch)));
  return flow::normal;
}

outcome<interpreter::flow> interpreter::run_tag(const filter_block& tag) {
  JINJA_TRY(auto caught, capture(tag.body));
  JINJA_TRY(const auto what, through_filters(*tag.filter, std::move(caught)));
  std::string scratch;
  JINJA_CHECK(write(printed(costs_, what, scratch)));
  return flow::normal;
}

outcome<interpreter::flow> interpreter::run_tag(const with_block& tag) {
  std::vector<value> values;
  for (const auto& [to, what] : tag.values) {
    JINJA_TRY(auto made, evaluate(*what));
    values.push_back(std::move(made));
  }
  const inside level(*this, current_);
  for (std::size_t i = 0; i < values.size(); ++i) {
    JINJA_CHECK(assign(tag.values[i].first, values[i]));
  }
  return execute(tag.body);
}

outcome<interpreter::flow> interpreter::run_tag(const generation_block& tag) {
  const inside level(*this, current_);
  return execute(tag.body);
}

} // namespace godwit::jinja
