#include "actors/jinja/interpreter.hpp"

#include "actors/jinja/access.hpp"

namespace godwit::jinja {

outcome<value> interpreter::evaluate(const expression& e) {
  costs_.spend();
  if (recursion_ >= costs_.most().recursion)
    return stop(errc::too_large, too_deep().value().message, e.line);
  ++recursion_;
  auto out = std::visit([&](const auto& kind) { return kind_of(kind); }, e.kind);
  --recursion_;
  if (out && costs_.used_up())
    out = tl::unexpected(costs_.check().error());
  if (!out && out.error().line == 0)
    out.error().line = e.line;
  return out;
}

outcome<value> interpreter::evaluate_or_none(const expression_ptr& e) {
  return e ? evaluate(*e) : outcome<value>(none{});
}

outcome<std::vector<value>> interpreter::evaluate_all(const std::vector<expression_ptr>& all) {
  std::vector<value> out;
  out.reserve(all.size());
  for (const auto& one : all) {
    JINJA_TRY(auto made, evaluate(*one));
    out.push_back(std::move(made));
  }
  return out;
}

outcome<value> interpreter::kind_of(const variable& e) {
  std::size_t looked_at = 0;
  const auto* found = current_->find(e.id, looked_at);
  costs_.spend(looked_at / 16);
  if (found)
    return *found;
  if (context_[e.id])
    return *context_[e.id];
  return undefined{tree_.names[e.id].get()};
}

outcome<value> interpreter::kind_of(const tuple_literal& e) {
  JINJA_TRY(auto items, evaluate_all(e.items));
  return heap_.make_list(std::move(items), list::sort::tuple);
}

outcome<value> interpreter::kind_of(const list_literal& e) {
  JINJA_TRY(auto items, evaluate_all(e.items));
  return heap_.make_list(std::move(items));
}

outcome<value> interpreter::kind_of(const dict_literal& e) {
  auto* out = heap_.make_dict();
  for (const auto& [key_node, value_node] : e.entries) {
    JINJA_TRY(const auto key, evaluate(*key_node));
    JINJA_TRY(const auto what, evaluate(*value_node));
    JINJA_TRY(const auto hash, hash_key(costs_, key));
    heap_.book(heap::entry_bytes);
    out->set(hash, key, what);
  }
  return out;
}

outcome<value> interpreter::kind_of(const attribute_access& e) {
  JINJA_TRY(const auto object, evaluate(*e.object));
  return get_attribute(heap_, object, e.name, &e.name);
}

outcome<value> interpreter::kind_of(const item_access& e) {
  JINJA_TRY(const auto object, evaluate(*e.object));
  JINJA_TRY(const auto key, evaluate(*e.key));
  return get_item(heap_, object, key, e.known.empty() ? nullptr : &e.known);
}

outcome<value> interpreter::kind_of(const slice_access& e) {
  JINJA_TRY(const auto object, evaluate(*e.object));
  JINJA_TRY(const auto start, evaluate_or_none(e.start));
  JINJA_TRY(const auto stop, evaluate_or_none(e.stop));
  JINJA_TRY(const auto step, evaluate_or_none(e.step));
  return get_slice(heap_, object, start, stop, step);
}

outcome<value> interpreter::kind_of(const filter_use& e) {
  JINJA_TRY(const auto input, e.input ? evaluate(*e.input) : outcome<value>(filter_input_));
  JINJA_TRY(auto given, evaluate_arguments(e.given));
  return e.code(heap_, input, given);
}

outcome<value> interpreter::kind_of(const test_use& e) {
  JINJA_TRY(const auto input, evaluate(*e.input));
  JINJA_TRY(auto given, evaluate_arguments(e.given));
  JINJA_TRY(const bool holds, e.code(heap_, input, given));
  return holds != e.negated;
}

outcome<value> interpreter::kind_of(const unary& e) {
  JINJA_TRY(const auto operand, evaluate(*e.operand));
  switch (e.what) {
  case unary::sort::negate:
    return negate(operand);
  case unary::sort::plus:
    return plus(operand);
  case unary::sort::logical_not:
    break;
  }
  return !truth(operand);
}

outcome<value> interpreter::kind_of(const arithmetic& e) {
  JINJA_TRY(auto out, evaluate(*e.first));
  for (const auto& [what, operand_node] : e.rest) {
    JINJA_TRY(const auto operand, evaluate(*operand_node));
    JINJA_TRY(out, calculate(heap_, what, out, operand));
  }
  return out;
}

outcome<value> interpreter::kind_of(const concatenation& e) {
  JINJA_TRY(const auto parts, evaluate_all(e.parts));
  text_builder out(costs_);
  for (const auto& part : parts)
    print(out, part);
  return heap_.make_text(out.finish());
}

outcome<value> interpreter::kind_of(const comparison_chain& e) {
  JINJA_TRY(auto left, evaluate(*e.first));
  for (const auto& [how, operand_node] : e.rest) {
    JINJA_TRY(auto right, evaluate(*operand_node));
    JINJA_TRY(const bool holds, compare(heap_, how, left, right));
    if (!holds)
      return false;
    left = std::move(right);
  }
  return true;
}

outcome<value> interpreter::kind_of(const logical& e) {
  value out = none{};
  for (const auto& operand : e.operands) {
    JINJA_TRY(out, evaluate(*operand));
    if (truth(out) != e.is_and)
      break;
  }
  return out;
}

outcome<value> interpreter::kind_of(const conditional& e) {
  JINJA_TRY(const auto condition, evaluate(*e.condition));
  if (truth(condition))
    return evaluate(*e.yes);
  return e.no ? evaluate(*e.no) : outcome<value>(undefined{});
}

outcome<arguments> interpreter::evaluate_arguments(const call_arguments& given) {
  arguments out;
  JINJA_TRY(out.positional, evaluate_all(given.positional));
  for (const auto& [name, node] : given.named) {
    JINJA_TRY(auto what, evaluate(*node));
    out.named.emplace_back(name, std::move(what));
  }
  if (given.more_positional) {
    JINJA_TRY(const auto more, evaluate(*given.more_positional));
    JINJA_TRY(const auto items, items_of(heap_, more));
    out.positional.insert(out.positional.end(), items.begin(), items.end());
  }
  if (given.more_named) {
    JINJA_TRY(const auto more, evaluate(*given.more_named));
    const auto* mapping = as_mapping(more);
    if (!mapping)
      return stop("the argument after ** must be a mapping");
    for (const auto& [key, what] : mapping->entries) {
      const auto* name = as_text(key);
      if (!name)
        return stop("keywords must be strings");
      costs_.spend();
      out.named.emplace_back(std::string(name->bytes()), what);
    }
    if (out.named.size() > most_named_arguments)
      return stop(errc::too_large,
        "a call has more than " + std::to_string(most_named_arguments) + " keyword arguments");
  }
  return out;
}

} // namespace godwit::jinja
