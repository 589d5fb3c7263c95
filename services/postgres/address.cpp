#include "services/postgres/address.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>

namespace godwit::postgres {

namespace {

using keywords = std::map<std::string, std::string>;

constexpr std::size_t most_servers = 16;

tl::unexpected<error> unreadable() {
  return fail(errc::invalid_argument,
    "is not a connection string of PostgreSQL, such as postgresql://user@host/database");
}

result<keywords> parse_words(const std::string& text) {
  char* message = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(
    PQconninfoParse(text.c_str(), &message), &PQconninfoFree);
  // The message quotes the text.
  if (message != nullptr)
    PQfreemem(message);
  if (options == nullptr)
    return unreadable();
  keywords out;
  for (const auto* one = options.get(); one->keyword != nullptr; ++one)
    if (one->val != nullptr)
      out[one->keyword] = one->val;
  return out;
}

std::vector<std::string> take_list(keywords& from, const char* key) {
  std::vector<std::string> out;
  const auto place = from.find(key);
  if (place == from.end())
    return out;
  const std::string_view text = place->second;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    out.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  from.erase(place);
  return out;
}

} // namespace

result<address> parse_address(std::string_view text) {
  if (text.empty() || text.size() > 16'384 || text.find('\0') != std::string_view::npos)
    return unreadable();
  auto words = parse_words(std::string(text));
  if (!words)
    return fail(words);

  address out;
  if (const auto place = words->find("connect_timeout"); place != words->end()) {
    int seconds = 0;
    const auto& value = place->second;
    const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), seconds);
    if (code != std::errc() || end != value.data() + value.size() || seconds < 1 || seconds > 60)
      return fail(errc::invalid_argument, "has a connect_timeout that is not from 1 to 60");
    out.connect_time = std::chrono::seconds(seconds);
    words->erase(place);
  }
  if (const auto place = words->find("password"); place != words->end())
    out.password = place->second;

  // A dead server is noticed in two seconds; one that only reads is none.
  (*words)["target_session_attrs"] = "read-write";
  (*words)["client_encoding"] = "UTF8";
  words->emplace("fallback_application_name", "godwit");
  words->emplace("gssencmode", "disable");
  words->emplace("keepalives_idle", "2");
  words->emplace("keepalives_interval", "1");
  words->emplace("keepalives_count", "2");
  words->emplace("tcp_user_timeout", "2000");

  const auto hosts = take_list(*words, "host");
  const auto addresses = take_list(*words, "hostaddr");
  const auto ports = take_list(*words, "port");
  const auto count = std::max({hosts.size(), addresses.size(), std::size_t{1}});
  const auto fits = [&](
                      const std::vector<std::string>& list) { return list.empty() || list.size() == count; };
  if (!fits(hosts) || !fits(addresses) || (!fits(ports) && ports.size() != 1) || count > most_servers)
    return fail(errc::invalid_argument, "names other numbers of hosts, addresses and ports, or too many");
  for (std::size_t i = 0; i < count; ++i) {
    server_address server{{words->begin(), words->end()}, "the default server"};
    if (!hosts.empty())
      server.words.emplace_back("host", hosts[i]);
    if (!addresses.empty())
      server.words.emplace_back("hostaddr", addresses[i]);
    const auto port = ports.empty() ? std::string() : ports[ports.size() == 1 ? 0 : i];
    if (!port.empty())
      server.words.emplace_back("port", port);
    if (!hosts.empty() || !addresses.empty())
      server.name = (hosts.empty() ? addresses[i] : hosts[i]) + (port.empty() ? "" : ":" + port);
    out.servers.push_back(std::move(server));
  }
  return out;
}

std::string without_password(std::string text, const address& of) {
  if (of.password.empty())
    return text;
  for (auto at = text.find(of.password); at != std::string::npos; at = text.find(of.password, at + 3))
    text.replace(at, of.password.size(), "***");
  return text;
}

} // namespace godwit::postgres
