#include "services/http/target.hpp"

#include "services/http/text.hpp"

namespace godwit::http {

namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  const char l = lower(c);
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

/// Cuts scheme and authority off an absolute form. Nothing if it is neither absolute nor origin form.
result<std::string_view> to_origin_form(std::string_view target) {
  if (target.starts_with('/'))
    return target;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!same_token(target.substr(0, scheme.size()), scheme))
      continue;
    const auto authority = target.substr(scheme.size());
    const auto end = authority.find_first_of("/?");
    if (end == std::string_view::npos)
      return std::string_view("/");
    if (authority[end] == '/')
      return authority.substr(end);
    break;
  }
  return fail(errc::invalid_argument, "the request target must begin with '/'");
}

} // namespace

result<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const int high = i + 1 < text.size() ? hex_value(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
      if (high < 0 || low < 0)
        return fail(errc::invalid_argument, "the request target has a malformed percent escape");
      if (high == 0 && low == 0)
        return fail(errc::invalid_argument, "the request target has an encoded NUL");
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

result<parsed_target> parse_target(std::string_view target) {
  const auto origin = to_origin_form(target);
  if (!origin)
    return fail(origin);
  // A fragment is the client's own affair and must not arrive; what comes after it is not read.
  const auto whole = origin->substr(0, origin->find('#'));
  const auto mark = whole.find('?');

  parsed_target out;
  auto path = percent_decode(whole.substr(0, mark));
  if (!path)
    return fail(path);
  out.path = std::move(*path);
  if (mark == std::string_view::npos)
    return out;

  auto rest = whole.substr(mark + 1);
  while (!rest.empty()) {
    const auto pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    if (pair.empty())
      continue;
    if (out.query.size() == max_query_parameters)
      return fail(errc::invalid_argument, "the query has more than 64 parameters");
    const auto equals = pair.find('=');
    auto name = percent_decode(pair.substr(0, equals), true);
    auto value =
      percent_decode(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1), true);
    if (!name)
      return fail(name);
    if (!value)
      return fail(value);
    out.query.emplace_back(std::move(*name), std::move(*value));
  }
  return out;
}

} // namespace godwit::http
