#include "services/config/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace godwit {

namespace {

/// The roles that a node can take.
constexpr std::array<std::string_view, 7> known_roles{
  "gateway", "session", "tokenizer", "router", "prefill", "decode", "cache"};

constexpr std::array<std::string_view, 6> known_levels{"trace", "debug", "info", "warn", "error", "off"};

template <class Range>
std::string joined(const Range& names) {
  std::string all;
  for (const auto& name : names)
    all += (all.empty() ? "" : ", ") + std::string(name);
  return all;
}

result<std::uint64_t> whole_number(std::string_view text, std::uint64_t least, std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value < least || value > most)
    return fail(errc::invalid_argument, "must be a whole number from " + std::to_string(least) + " to "
                                          + std::to_string(most) + ", not \"" + std::string(text) + "\"");
  return value;
}

/// The setter of a whole number within bounds.
template <auto Member, std::uint64_t Least, std::uint64_t Most>
result<void> number(config& target, std::string_view text) {
  const auto value = whole_number(text, Least, Most);
  if (!value)
    return fail(value);
  using type = std::remove_reference_t<decltype(target.*Member)>;
  if constexpr (std::is_integral_v<type>)
    static_assert(Most <= std::numeric_limits<type>::max());
  target.*Member = type(*value);
  return {};
}

/// The setter of a number within bounds, which are given in hundredths: clang 16 takes no floating-point
/// template arguments.
template <auto Member, int Least, int Most>
result<void> real(config& target, std::string_view text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()
      || !(value >= Least / 100. && value <= Most / 100.))
    return fail(errc::invalid_argument,
      fmt::format("must be a number from {} to {}, not \"{}\"", Least / 100., Most / 100., text));
  target.*Member = static_cast<float>(value);
  return {};
}

/// The setter of a path.
template <auto Member>
result<void> path(config& target, std::string_view text) {
  if (text.empty() || text.find('\0') != std::string_view::npos)
    return fail(errc::invalid_argument, "must be a path");
  target.*Member = std::filesystem::path(text);
  return {};
}

result<void> roles(config& target, std::string_view text) {
  std::vector<std::string> wanted;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    const auto role = text.substr(begin, end - begin);
    if (role != "all" && std::find(known_roles.begin(), known_roles.end(), role) == known_roles.end())
      return fail(errc::invalid_argument,
        "knows no role \"" + std::string(role) + "\"; there are all, " + joined(known_roles));
    if (std::find(wanted.begin(), wanted.end(), role) == wanted.end())
      wanted.emplace_back(role);
    begin = end + 1;
  }
  if (wanted.size() > 1 && std::find(wanted.begin(), wanted.end(), "all") != wanted.end())
    return fail(errc::invalid_argument, "has \"all\" beside other roles");
  target.roles = std::move(wanted);
  return {};
}

result<void> listen(config& target, std::string_view text) {
  auto parsed = parse_endpoint(text);
  if (!parsed)
    return fail(parsed);
  target.listen = std::move(*parsed);
  return {};
}

result<void> mesh_listen(config& target, std::string_view text) {
  auto parsed = parse_endpoint(text);
  if (!parsed)
    return fail(parsed);
  target.mesh_listen = std::move(*parsed);
  return {};
}

result<void> node(config& target, std::string_view text) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_'
           || c == '.';
  };
  if (text.empty() || text.size() > 63 || !std::all_of(text.begin(), text.end(), good))
    return fail(errc::invalid_argument, "must be 1 to 63 letters, digits, '-', '_' or '.'");
  target.node = text;
  return {};
}

result<void> format(config& target, std::string_view text) {
  if (text != "text" && text != "json")
    return fail(errc::invalid_argument, "must be text or json, not \"" + std::string(text) + "\"");
  target.log_format = text == "json" ? log_format::json : log_format::text;
  return {};
}

result<void> kv_elements(config& target, std::string_view text) {
  if (text != "auto" && text != "fp16" && text != "bf16" && text != "int8")
    return fail(
      errc::invalid_argument, "must be auto, fp16, bf16 or int8, not \"" + std::string(text) + "\"");
  target.kv_type = text;
  return {};
}

result<void> level(config& target, std::string_view text) {
  if (std::find(known_levels.begin(), known_levels.end(), text) == known_levels.end())
    return fail(errc::invalid_argument, "must be one of " + joined(known_levels));
  target.log_level = text;
  return {};
}

result<void> journal_engine(config& target, std::string_view text) {
  if (text != "rocksdb" && text != "postgres")
    return fail(errc::invalid_argument, "must be rocksdb or postgres, not \"" + std::string(text) + "\"");
  target.journal = text == "postgres" ? journal_kind::postgres : journal_kind::rocksdb;
  return {};
}

/// The text may be a secret, so no message repeats it.
template <auto Member>
result<void> database(config& target, std::string_view text) {
  if (text.empty() || text.find('\0') != std::string_view::npos)
    return fail(errc::invalid_argument, "must be a connection string");
  target.*Member = text;
  return {};
}

result<void> registry(config& target, std::string_view text) {
  if (text != "static" && text != "postgres" && text != "group")
    return fail(
      errc::invalid_argument, "must be static, postgres or group, not \"" + std::string(text) + "\"");
  target.mesh_registry = text == "static"     ? registry_kind::list
                         : text == "postgres" ? registry_kind::postgres
                                              : registry_kind::group;
  return {};
}

/// A host alone: the ports are those of mesh_listen.
result<void> advertise(config& target, std::string_view text) {
  const auto parsed = parse_endpoint(std::string(text) + ":1");
  if (!parsed)
    return fail(errc::invalid_argument,
      "must be a host's name or address, an IPv6 one in brackets, not \"" + std::string(text) + "\"");
  target.mesh_advertise = parsed->host;
  return {};
}

result<void> damaged_log(config& target, std::string_view text) {
  if (text != "refuse" && text != "cut")
    return fail(errc::invalid_argument, "must be refuse or cut, not \"" + std::string(text) + "\"");
  target.cut_damaged_journal = text == "cut";
  return {};
}

} // namespace

result<endpoint> parse_endpoint(std::string_view text) {
  const auto bad = [&] {
    return fail(errc::invalid_argument,
      "must be HOST:PORT or [IPV6]:PORT with a port from 0 to 65535, not \"" + std::string(text) + "\"");
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos)
    return bad();
  auto host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed)
    host = host.substr(1, host.size() - 2);
  // An IPv6 address without brackets would leave open where the port begins.
  const bool colons = host.find(':') != std::string_view::npos;
  if (host.empty() || colons != bracketed || host.size() > 253
      || host.find_first_of(std::string_view("[]/ \t\r\n\0", 8)) != std::string_view::npos)
    return bad();
  const auto port = whole_number(text.substr(colon + 1), 0, 65535);
  if (!port)
    return bad();
  return endpoint{std::string(host), static_cast<std::uint16_t>(*port)};
}

const std::vector<setting>& settings() {
  using enum setting_kind;
  constexpr auto mebi = std::uint64_t{1} << 20;
  static const std::vector<setting> all{
    {"model", text, "GGUF file of the model", path<&config::model>},
    {"roles", list, "what this node does: \"all\" or some of its roles", roles},
    {"threads", number, "threads for compute; 0 is one a core", godwit::number<&config::threads, 0, 1024>},
    {"repack_cache", number, "1 keeps packed weights beside the model, for the next start to map",
      godwit::number<&config::repack_cache, 0, 1>},
    {"listen", text, "HOST:PORT of the HTTP gateway; port 0 picks a free one", listen},
    {"data", text, "directory of the journal and the cold cache", path<&config::data>},
    {"node", text, "name of this node; the host's name by default", node},
    {"mesh_registry", text, "what says which nodes there are: static (mesh_nodes), postgres or group",
      registry},
    {"mesh_nodes", text, "TOML file that lists the nodes of the mesh, for mesh_registry = static",
      path<&config::mesh_nodes>},
    {"mesh_registry_url", text,
      "connection string of the database with the nodes, for mesh_registry = postgres; it may hold a "
      "password, "
      "so the environment or mesh_registry_url_file is a better place than a flag",
      database<&config::mesh_registry_url>},
    {"mesh_registry_url_file", text, "file that holds that connection string",
      path<&config::mesh_registry_url_file>},
    {"mesh_group_file", text, "file of a Kubernetes role group, for mesh_registry = group",
      path<&config::mesh_group_file>},
    {"mesh_keys", text, "folder with NODE.public for each node, for mesh_registry = group",
      path<&config::mesh_keys>},
    {"mesh_key", text, "secret file of this node, as `godwit keys new` makes it", path<&config::mesh_key>},
    {"mesh_listen", text,
      "HOST:PORT for other nodes, with the two ports behind it; by default as the registry says",
      mesh_listen},
    {"mesh_advertise", text,
      "host at which other nodes reach those ports, for mesh_registry = postgres; by default that of "
      "mesh_listen",
      advertise},
    {"mesh_plain", number, "1 lets nodes talk without keys, on loopback only",
      godwit::number<&config::mesh_plain, 0, 1>},
    {"log_format", text, "text or json", format},
    {"log_level", text, "trace, debug, info, warn, error or off", level},
    {"max_body_bytes", number, "largest body of a request",
      godwit::number<&config::max_body_bytes, 1024, 1024 * mebi>},
    {"max_header_bytes", number, "largest head of a request",
      godwit::number<&config::max_header_bytes, 1024, mebi>},
    {"max_connections", number, "open connections; more are refused",
      godwit::number<&config::max_connections, 1, 1'000'000>},
    {"header_timeout_s", number, "seconds to send a request's head",
      godwit::number<&config::header_timeout, 1, 3600>},
    {"body_timeout_s", number, "seconds to send a request's body",
      godwit::number<&config::body_timeout, 1, 3600>},
    {"idle_timeout_s", number, "seconds between two requests of a connection",
      godwit::number<&config::idle_timeout, 1, 3600>},
    {"heartbeat_s", number, "seconds between two signs of life on a silent stream",
      godwit::number<&config::heartbeat, 1, 3600>},
    {"drain_deadline_s", number, "seconds that running turns have after SIGTERM",
      godwit::number<&config::drain_deadline, 0, 86'400>},
    {"kv_type", text, "what keys and values are kept in: fp16, bf16 or int8; auto is fp16", kv_elements},
    {"kv_tokens", number, "positions that the KV pool holds, over all sequences",
      godwit::number<&config::kv_tokens, 256, std::uint64_t{1} << 30>},
    {"step_tokens", number, "tokens that one step of the model computes at most",
      godwit::number<&config::step_tokens, 16, 4096>},
    {"chunk_tokens", number, "prompt tokens of a step that carries running streams too, at most",
      godwit::number<&config::chunk_tokens, 16, 4096>},
    {"max_inter_token_ms", number,
      "milliseconds that a stream should wait for its next token while prompts are computed; 0 is any",
      godwit::number<&config::max_inter_token, 0, 60'000>},
    {"max_sequences", number, "prompts and running streams at the same time",
      godwit::number<&config::max_sequences, 1, 1024>},
    {"max_queue", number, "requests that may wait for their turn",
      godwit::number<&config::max_queue, 1, 65'536>},
    {"cache_host_bytes", number, "host memory for copies of KV blocks; 0 is none",
      godwit::number<&config::cache_host_bytes, 0, std::uint64_t{1} << 44>},
    {"cache_cold_bytes", number, "disk for KV blocks that are kept over restarts; 0 is none",
      godwit::number<&config::cache_cold_bytes, 0, std::uint64_t{1} << 50>},
    {"cache_offload_after", number,
      "times that a KV block is asked for again before the lower tiers get it; 0: each one goes down",
      godwit::number<&config::cache_offload_after, 0, 255>},
    {"cache_cold_dir", text, "directory of those; by default \"cold\" in the data directory",
      path<&config::cache_cold_dir>},
    {"handover_min_tokens", number,
      "tokens of a prompt that must be left to compute for another node to compute it",
      godwit::number<&config::handover_min_tokens, 16, std::uint64_t{1} << 30>},
    {"handover_deadline_s", number, "seconds that another node may take for a prompt, its queue included",
      godwit::number<&config::handover_deadline, 1, 75>},
    {"default_temperature", setting_kind::real, "temperature where a request does not say; 0 is greedy",
      godwit::real<&config::default_temperature, 0, 200>},
    {"default_top_p", setting_kind::real, "top_p where a request does not say; 1 is off",
      godwit::real<&config::default_top_p, 1, 100>},
    {"default_top_k", number, "top_k where a request does not say; 0 is off",
      godwit::number<&config::default_top_k, 0, 1'000'000>},
    {"default_min_p", setting_kind::real, "min_p where a request does not say; 0 is off",
      godwit::real<&config::default_min_p, 0, 100>},
    {"journal", text, "rocksdb: embedded, for one node; postgres: a database for many", journal_engine},
    {"journal_url", text,
      "connection string of the database, postgresql://USER@HOST1,HOST2/DATABASE; it may hold a password, so "
      "the environment or journal_url_file is a better place than a flag",
      database<&config::journal_url>},
    {"journal_url_file", text, "file that holds that connection string", path<&config::journal_url_file>},
    {"journal_allow_unsafe", number, "1 runs on a database that may lose in a crash what it acknowledged",
      godwit::number<&config::journal_allow_unsafe, 0, 1>},
    {"commit_tokens", number, "tokens of a turn that one journal record may hold",
      godwit::number<&config::commit_tokens, 1, 4096>},
    {"journal_deadline_s", number, "seconds that a call of the journal may take",
      godwit::number<&config::journal_deadline, 1, 600>},
    {"journal_queue_bytes", number, "records that may wait for the disk, in bytes",
      godwit::number<&config::journal_queue_bytes, mebi, 1024 * mebi>},
    {"journal_damaged_log", text,
      "refuse: do not start over a journal that is damaged before its end; cut: lose all behind it",
      damaged_log},
  };
  return all;
}

} // namespace godwit
