#include "actors/jinja/json.hpp"

#include "actors/jinja/operators.hpp"
#include "actors/jinja/printing.hpp"
#include "actors/jinja/sorting.hpp"
#include "actors/text/utf8.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cmath>

namespace godwit::jinja {

namespace {

template <class Json>
outcome<value> convert(heap& memory, const Json& json, int depth) {
  if (depth > memory.costs().most().nesting)
    return stop(errc::too_large,
      "the messages are nested more than " + std::to_string(memory.costs().most().nesting) + " levels deep");
  switch (json.type()) {
  case Json::value_t::null:
  case Json::value_t::discarded:
    return none{};
  case Json::value_t::boolean:
    return json.template get<bool>();
  case Json::value_t::number_integer:
    return json.template get<std::int64_t>();
  case Json::value_t::number_unsigned:
    if (json.template get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
      return stop("a number in the messages does not fit into 64 bits");
    return json.template get<std::int64_t>();
  case Json::value_t::number_float:
    return json.template get<double>();
  case Json::value_t::string: {
    const auto& bytes = json.template get_ref<const std::string&>();
    if (!utf8::valid(bytes))
      return stop("a text in the messages is not UTF-8");
    return memory.make_text(bytes);
  }
  case Json::value_t::array: {
    std::vector<value> items;
    items.reserve(json.size());
    for (const auto& item : json) {
      JINJA_TRY(auto made, convert(memory, item, depth + 1));
      items.push_back(std::move(made));
    }
    return memory.make_list(std::move(items));
  }
  case Json::value_t::object: {
    auto* out = memory.make_dict();
    for (const auto& [key, item] : json.items()) {
      if (!utf8::valid(key))
        return stop("a key in the messages is not UTF-8");
      JINJA_TRY(auto made, convert(memory, item, depth + 1));
      memory.book(heap::entry_bytes + key.size());
      out->set("s" + key, memory.make_text(key), made);
    }
    return out;
  }
  case Json::value_t::binary:
    return stop("binary data cannot be rendered");
  }
  return none{};
}

class writer {
 public:
  writer(heap& memory, const json_style& style) : memory_(memory), style_(style), out_(memory.costs()) {
    item_separator_ = style.separators ? style.separators->first : style.indent ? "," : ", ";
    key_separator_ = style.separators ? style.separators->second : ": ";
  }

  outcome<std::string> run(const value& v) {
    JINJA_CHECK(write(v, 0));
    return out_.finish();
  }

 private:
  outcome<void> write(const value& v, int depth) {
    if (depth > memory_.costs().most().nesting)
      memory_.costs().refuse_nesting();
    memory_.costs().spend();
    JINJA_CHECK(memory_.costs().check());
    if (const auto* t = as_text(v)) {
      write_string(t->bytes());
      return {};
    }
    if (is_none(v)) {
      out_.append("null");
      return {};
    }
    if (const auto* b = std::get_if<bool>(&v)) {
      out_.append(*b ? "true" : "false");
      return {};
    }
    if (const auto* i = std::get_if<std::int64_t>(&v)) {
      out_.append(std::to_string(*i));
      return {};
    }
    if (const auto* d = std::get_if<double>(&v)) {
      out_.append(number(*d));
      return {};
    }
    const auto* l = as_list(v);
    if (l && (l->kind == list::sort::list || l->kind == list::sort::tuple))
      return write_list(*l, depth);
    if (const auto* d = as_mapping(v))
      return write_dict(*d, depth);
    return stop("'" + std::string(type_name(v)) + "' is not JSON serializable");
  }

  static std::string number(double d) {
    if (std::isnan(d))
      return "NaN";
    if (std::isinf(d))
      return d < 0 ? "-Infinity" : "Infinity";
    return float_repr(d);
  }

  void line(int depth) {
    if (!style_.indent)
      return;
    out_.append(1, '\n');
    out_.append(static_cast<std::size_t>(depth), *style_.indent);
  }

  outcome<void> write_list(const list& l, int depth) {
    if (l.items.empty()) {
      out_.append("[]");
      return {};
    }
    out_.append("[");
    bool next = false;
    for (const auto& item : l.items) {
      if (std::exchange(next, true))
        out_.append(item_separator_);
      line(depth + 1);
      JINJA_CHECK(write(item, depth + 1));
    }
    line(depth);
    out_.append("]");
    return {};
  }

  outcome<void> write_dict(const dict& d, int depth) {
    if (d.entries.empty()) {
      out_.append("{}");
      return {};
    }
    auto entries = d.entries;
    if (style_.sort_keys) {
      std::vector<value> keys;
      std::vector<value> places;
      for (const auto& entry : entries) {
        keys.push_back(entry.first);
        places.push_back(count_value(places.size()));
      }
      JINJA_TRY(const auto order, sorted(memory_.costs(), places, keys, false));
      for (std::size_t i = 0; i < order.size(); ++i)
        entries[i] = d.entries[static_cast<std::size_t>(std::get<std::int64_t>(order[i]))];
    }
    out_.append("{");
    bool next = false;
    for (const auto& [key, what] : entries) {
      if (std::exchange(next, true))
        out_.append(item_separator_);
      line(depth + 1);
      JINJA_CHECK(write_key(key));
      out_.append(key_separator_);
      JINJA_CHECK(write(what, depth + 1));
    }
    line(depth);
    out_.append("}");
    return {};
  }

  outcome<void> write_key(const value& key) {
    if (const auto* t = as_text(key))
      write_string(t->bytes());
    else if (const auto* b = std::get_if<bool>(&key))
      write_string(*b ? "true" : "false");
    else if (const auto* i = std::get_if<std::int64_t>(&key))
      write_string(std::to_string(*i));
    else if (const auto* d = std::get_if<double>(&key))
      write_string(number(*d));
    else if (is_none(key))
      write_string("null");
    else
      return stop("a key of type '" + std::string(type_name(key)) + "' is not JSON serializable");
    return {};
  }

  void write_escape(std::uint32_t unit) {
    std::array<char, 8> escape{};
    std::snprintf(escape.data(), escape.size(), "\\u%04x", unit & 0xFFFF);
    out_.append(escape.data());
  }

  void write_string(std::string_view bytes) {
    constexpr std::string_view named = "\"\\\n\r\t\b\f";
    constexpr std::string_view letters = "\"\\nrtbf";
    memory_.costs().spend_bytes(4 * bytes.size());
    out_.append("\"");
    std::size_t plain = 0; // where the bytes begin that need no escape
    for (std::size_t at = 0; at < bytes.size() && !memory_.costs().used_up();) {
      const auto here = utf8::first(bytes.substr(at));
      const auto code = static_cast<std::uint32_t>(here.code);
      const auto short_form = code < 0x80 ? named.find(bytes[at]) : std::string_view::npos;
      if (short_form != std::string_view::npos || code < 0x20 || (style_.ascii && code >= 0x7F)) {
        out_.append(bytes.substr(plain, at - plain));
        plain = at + here.size;
        if (short_form != std::string_view::npos) {
          out_.append("\\");
          out_.append(1, letters[short_form]);
        } else if (code < 0x10000) {
          write_escape(code);
        } else {
          write_escape(0xD800 + ((code - 0x10000) >> 10));
          write_escape(0xDC00 + ((code - 0x10000) & 0x3FF));
        }
      }
      at += here.size;
    }
    out_.append(bytes.substr(std::min(plain, bytes.size())));
    out_.append("\"");
  }

  heap& memory_;
  const json_style& style_;
  text_builder out_;
  std::string item_separator_;
  std::string key_separator_;
};

} // namespace

outcome<value> from_json(heap& memory, const nlohmann::ordered_json& json) {
  return convert(memory, json, 0);
}

outcome<value> from_json(heap& memory, const nlohmann::json& json) {
  return convert(memory, json, 0);
}

outcome<std::string> to_json(heap& memory, const value& v, const json_style& style) {
  return writer(memory, style).run(v);
}

} // namespace godwit::jinja
