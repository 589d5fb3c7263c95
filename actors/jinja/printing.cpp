#include "actors/jinja/printing.hpp"

#include "actors/text/letters.hpp"
#include "actors/text/utf8.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace godwit::jinja {

namespace {

void print_text_repr(text_builder& out, std::string_view bytes) {
  const bool has_single = bytes.find('\'') != std::string_view::npos;
  const bool has_double = bytes.find('"') != std::string_view::npos;
  out.costs().spend_bytes(16 * bytes.size());
  const char quote = has_single && !has_double ? '"' : '\'';
  out.append(1, quote);
  while (!bytes.empty() && !out.costs().used_up()) {
    const auto here = utf8::first(bytes);
    const auto code = static_cast<std::uint32_t>(here.code);
    std::array<char, 12> escape{};
    if (here.code == static_cast<char32_t>(quote) || here.code == U'\\') {
      out.append(1, '\\');
      out.append(1, bytes[0]);
    } else if (here.code == U'\n') {
      out.append("\\n");
    } else if (here.code == U'\r') {
      out.append("\\r");
    } else if (here.code == U'\t') {
      out.append("\\t");
    } else if (letters::is_printable(here.code)) {
      out.append(bytes.substr(0, here.size));
    } else {
      const char* form = code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x";
      std::snprintf(escape.data(), escape.size(), form, code);
      out.append(escape.data());
    }
    bytes.remove_prefix(here.size);
  }
  out.append(1, quote);
}

/// Writes a value; `depth` counts the containers around it.
class printer {
 public:
  explicit printer(text_builder& out) : out_(out) {}

  void repr(const value& v) {
    if (!out_.costs().spend())
      return;
    if (depth_ > out_.costs().most().nesting) {
      out_.costs().refuse_nesting();
      return;
    }
    ++depth_;
    std::visit(*this, v);
    --depth_;
  }

  void operator()(undefined) { out_.append("Undefined"); }
  void operator()(none) { out_.append("None"); }
  void operator()(bool b) { out_.append(b ? "True" : "False"); }
  void operator()(std::int64_t i) { out_.append(std::to_string(i)); }
  void operator()(double d) { out_.append(float_repr(d)); }
  void operator()(const text_ref& t) {
    if (t->is_safe())
      out_.append("Markup(");
    print_text_repr(out_, t->bytes());
    if (t->is_safe())
      out_.append(")");
  }
  void operator()(const list* l) {
    switch (l->kind) {
    case list::sort::list:
      return elements("[", *l, "]");
    case list::sort::tuple:
      return elements("(", *l, l->items.size() == 1 ? ",)" : ")");
    case list::sort::keys:
      return elements("dict_keys([", *l, "])");
    case list::sort::values:
      return elements("dict_values([", *l, "])");
    case list::sort::items:
      return elements("dict_items([", *l, "])");
    case list::sort::range:
      out_.append("range(" + std::to_string(l->bounds[0]) + ", " + std::to_string(l->bounds[1]));
      if (l->bounds[2] != 1)
        out_.append(", " + std::to_string(l->bounds[2]));
      return out_.append(")");
    case list::sort::iterator:
      return out_.append("<generator object>");
    }
  }
  void operator()(const dict* d) {
    out_.append(d->is_namespace ? "<Namespace {" : "{");
    bool next = false;
    for (const auto& [key, what] : d->entries) {
      if (std::exchange(next, true))
        out_.append(", ");
      repr(key);
      out_.append(": ");
      repr(what);
      if (out_.costs().used_up())
        return;
    }
    out_.append(d->is_namespace ? "}>" : "}");
  }
  void operator()(const function* f) {
    out_.append(f->kind == function::sort::macro ? "<Macro>" : "<function>");
  }
  void operator()(const loop_state* l) {
    out_.append("<LoopContext " + std::to_string(l->index + 1) + "/" + std::to_string(l->items.size()) + ">");
  }

 private:
  void elements(std::string_view open, const list& l, std::string_view close) {
    out_.append(open);
    bool next = false;
    for (const auto& item : l.items) {
      if (std::exchange(next, true))
        out_.append(", ");
      repr(item);
      if (out_.costs().used_up())
        return;
    }
    out_.append(close);
  }

  text_builder& out_;
  int depth_ = 0;
};

} // namespace

void print_repr(text_builder& out, const value& v) {
  printer(out).repr(v);
}

void print(text_builder& out, const value& v) {
  if (const auto* t = as_text(v))
    out.append(t->bytes());
  else if (!is_undefined(v))
    print_repr(out, v);
}

std::string_view printed(budget& costs, const value& v, std::string& scratch) {
  if (const auto* t = as_text(v))
    return t->bytes();
  text_builder out(costs);
  print(out, v);
  scratch = out.finish();
  return scratch;
}

std::string float_repr(double number) {
  if (std::isnan(number))
    return "nan";
  if (std::isinf(number))
    return number < 0 ? "-inf" : "inf";
  // The shortest digits come in scientific form; Python shows exponents below -4 and from 16 on only.
  std::array<char, 40> buffer{};
  const auto end =
    std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::scientific);
  const std::string_view form(buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data()));
  const auto e = form.find('e');
  int exponent = 0;
  std::from_chars(form.data() + e + (form[e + 1] == '+' ? 2 : 1), form.data() + form.size(), exponent);
  std::string digits;
  for (const char c : form.substr(0, e))
    if (c >= '0' && c <= '9')
      digits.push_back(c);
  const std::string sign = form[0] == '-' ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    std::string out = sign + digits.substr(0, 1);
    if (digits.size() > 1)
      out += "." + digits.substr(1);
    const auto size = std::to_string(std::abs(exponent));
    return out + (exponent < 0 ? "e-" : "e+") + (size.size() < 2 ? "0" : "") + size;
  }
  if (exponent < 0)
    return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole)
    return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

} // namespace godwit::jinja
