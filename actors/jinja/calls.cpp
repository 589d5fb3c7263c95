#include "actors/jinja/interpreter.hpp"

#include "actors/jinja/access.hpp"

#include <algorithm>
#include <array>
#include <ctime>

namespace godwit::jinja {

namespace {

/// What a sandboxed Jinja2 allows for range().
constexpr std::size_t most_range = 100'000;

/// Takes a named argument out of a call.
std::optional<value> take_named(arguments& given, std::string_view name) {
  const auto found =
    std::ranges::find(given.named, name, [](const auto& pair) { return std::string_view(pair.first); });
  if (found == given.named.end())
    return std::nullopt;
  auto out = std::move(found->second);
  given.named.erase(found);
  return out;
}

} // namespace

outcome<value> interpreter::run_call(const call& e, function* caller) {
  const bool literal =
    e.given.positional.size() == 1 && std::holds_alternative<constant>(e.given.positional[0]->kind);
  const auto evaluate_given = [&]() -> outcome<arguments> {
    JINJA_TRY(auto given, evaluate_arguments(e.given));
    if (caller)
      given.named.emplace_back("caller", caller);
    return given;
  };
  // A method is called as it is found, without a value of its own.
  if (const auto* access = std::get_if<attribute_access>(&e.callee->kind)) {
    JINJA_TRY(const auto object, evaluate(*access->object));
    JINJA_TRY(const auto code, find_method(object, access->name));
    if (code) {
      JINJA_TRY(auto given, evaluate_given());
      return code(heap_, object, given);
    }
    JINJA_TRY(const auto callee, get_attribute(heap_, object, access->name, &access->name));
    JINJA_TRY(auto given, evaluate_given());
    return call_value(callee, std::move(given), literal);
  }
  JINJA_TRY(const auto callee, evaluate(*e.callee));
  JINJA_TRY(auto given, evaluate_given());
  return call_value(callee, std::move(given), literal);
}

outcome<value> interpreter::call_value(const value& callee, arguments given, bool literal) {
  const auto* f = as_function(callee);
  if (!f)
    return is_undefined(callee) ? outcome<value>(undefined_fault(callee))
                                : stop("'" + std::string(type_name(callee)) + "' object is not callable");
  switch (f->kind) {
  case function::sort::range:
    return make_range(given);
  case function::sort::dict:
    return make_mapping(std::move(given), false);
  case function::sort::make_namespace:
    return make_mapping(std::move(given), true);
  case function::sort::raise_exception:
    return raise(given, literal);
  case function::sort::strftime_now:
    return format_time(given);
  case function::sort::method:
    return f->code(heap_, f->self, given);
  case function::sort::macro:
    return call_macro(*f, std::move(given));
  }
  return none{};
}

outcome<value> interpreter::call_macro(const function& callee, arguments given) {
  const auto& macro = *callee.macro;
  const auto count = macro.parameters.size();
  const inside level(*this, callee.closure);

  // Positional arguments first, then names; what is left needs varargs and kwargs to take it.
  bool caller_is_parameter = false;
  std::vector<bool> missing(count, false);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [id, name] = macro.parameters[i];
    caller_is_parameter = caller_is_parameter || id == known::caller;
    if (i < given.positional.size()) {
      current_->set(id, given.positional[i]);
    } else if (auto named = take_named(given, name)) {
      current_->set(id, std::move(*named));
    } else {
      missing[i] = true;
      current_->set(id, undefined{&name});
    }
  }
  if (macro.uses_caller && !caller_is_parameter)
    current_->set(
      known::caller, take_named(given, "caller").value_or(undefined{tree_.names[known::caller].get()}));
  if (macro.uses_kwargs) {
    auto* rest = heap_.make_dict();
    for (const auto& [name, what] : given.named) {
      heap_.book(heap::entry_bytes);
      rest->set("s" + name, heap_.make_text(name), what);
    }
    current_->set(known::kwargs, rest);
  } else if (!given.named.empty()) {
    return stop("macro '" + macro.name + "' takes no keyword argument '" + given.named[0].first + "'");
  }
  if (macro.uses_varargs) {
    const auto from = static_cast<std::ptrdiff_t>(std::min(count, given.positional.size()));
    current_->set(known::varargs,
      heap_.make_list({given.positional.begin() + from, given.positional.end()}, list::sort::tuple));
  } else if (given.positional.size() > count) {
    return stop("macro '" + macro.name + "' takes not more than " + std::to_string(count) + " argument(s)");
  }

  // Defaults belong to the last parameters and may refer to those before them.
  for (std::size_t i = 0; i < count; ++i) {
    const auto first_default = count - macro.defaults.size();
    if (!missing[i] || i < first_default)
      continue;
    JINJA_TRY(auto otherwise, evaluate(*macro.defaults[i - first_default]));
    current_->set(macro.parameters[i].first, std::move(otherwise));
  }

  text_builder caught(costs_);
  auto* outer = std::exchange(out_, &caught);
  auto went = execute(macro.body);
  out_ = outer;
  if (!went)
    return tl::unexpected(std::move(went.error()));
  return heap_.make_text(caught.finish());
}

outcome<value> interpreter::make_range(const arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("range", given, {"/start", "/stop", "/step"}, 1));
  std::array<std::int64_t, 3> bounds{0, 0, 1};
  JINJA_TRY(bounds[1], p.integer(0, 0));
  if (p[1]) {
    bounds[0] = bounds[1];
    JINJA_TRY(bounds[1], p.integer(1, 0));
    JINJA_TRY(bounds[2], p.integer(2, 1));
  }
  const auto [start, end, step] = bounds;
  if (step == 0)
    return stop("range() arg 3 must not be zero");
  std::vector<value> items;
  for (std::int64_t i = start; step > 0 ? i < end : i > end;) {
    if (items.size() == most_range)
      return stop(errc::too_large, "range() may have " + std::to_string(most_range) + " elements at most");
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i))
      break;
  }
  auto* out = heap_.make_list(std::move(items), list::sort::range);
  std::ranges::copy(bounds, out->bounds);
  return out;
}

outcome<value> interpreter::make_mapping(arguments given, bool is_namespace) {
  auto* out = heap_.make_dict(is_namespace);
  if (given.positional.size() > 1)
    return stop("at most one positional argument makes a mapping");
  if (!given.positional.empty()) {
    JINJA_CHECK(update_dict(heap_, *out, given.positional[0]));
  }
  for (const auto& [name, what] : given.named) {
    heap_.book(heap::entry_bytes);
    out->set("s" + name, heap_.make_text(name), what);
  }
  return out;
}

outcome<value> interpreter::raise(const arguments& given, bool literal) {
  JINJA_TRY(const auto p, parameters::bind("raise_exception", given, {"message"}, 1));
  // Words that the template's author wrote may be shown; a message that was put together may hold a prompt's
  // text.
  const auto* message = as_text(*p[0]);
  return stop(literal && message ? std::string(message->bytes()) : "the template refuses these messages");
}

outcome<value> interpreter::format_time(const arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("strftime_now", given, {"format"}, 1));
  JINJA_TRY(const auto form, p.string(0));
  if (!form)
    return stop("strftime_now() needs a format");
  if (form->size() > 1000 || form->find('\0') != std::string_view::npos)
    return stop("the format of strftime_now() is too long");
  costs_.spend(100);
  const auto seconds = std::chrono::system_clock::to_time_t(now_);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  // A time without a zone has no name and no offset for one; %f is Python's own.
  std::string plain;
  for (std::size_t i = 0; i < form->size(); ++i) {
    const bool escape = (*form)[i] == '%' && i + 1 < form->size();
    if (escape && ((*form)[i + 1] == 'Z' || (*form)[i + 1] == 'z')) {
      ++i;
    } else if (escape && (*form)[i + 1] == 'f') {
      const auto since = now_.time_since_epoch() - std::chrono::seconds(seconds);
      const auto digits =
        std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(since).count());
      plain += std::string(6 - std::min<std::size_t>(6, digits.size()), '0') + digits;
      ++i;
    } else {
      plain += (*form)[i];
      if (escape)
        plain += (*form)[++i];
    }
  }
  // Each conversion gives at most a few dozen bytes; widths such as "%999d" end in an empty result.
  std::vector<char> buffer(64 * 1024);
  const auto size = std::strftime(buffer.data(), buffer.size(), plain.c_str(), &parts);
  return heap_.make_text(std::string(buffer.data(), size));
}

} // namespace godwit::jinja
