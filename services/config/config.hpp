#pragma once

#include "messages/result.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace godwit {

/// An address to listen at.
struct endpoint {
  std::string host; ///< a name or an address, an IPv6 one without brackets
  std::uint16_t port = 0;

  bool operator==(const endpoint&) const = default;
};

/// "HOST:PORT" or "[IPV6]:PORT". @returns `invalid_argument`
result<endpoint> parse_endpoint(std::string_view text);

enum class log_format { text, json };

/// Where sessions are kept.
enum class journal_kind {
  rocksdb,  ///< embedded, in the data directory: one node
  postgres, ///< a database that many nodes share
};

/// What says which nodes there are.
enum class registry_kind {
  list,     ///< a file with a list: static
  postgres, ///< a table of a database
  group,    ///< what a group of Kubernetes' pods is told of itself
};

/// How one node is to run. The values here are the defaults; settings() lists names, meanings and ranges.
struct config {
  std::filesystem::path model; ///< a GGUF file; empty: none was named
  std::vector<std::string> roles{"all"};
  unsigned threads = 0;      ///< for compute; 0 is one a core
  bool repack_cache = false; ///< keep packed weights beside the model
  endpoint listen{"127.0.0.1", 8080};
  std::filesystem::path data{"godwit-data"};
  std::string node; ///< the host's name if none was given
  godwit::log_format log_format = log_format::text;
  std::string log_level{"info"};

  // The mesh; see in_mesh().
  registry_kind mesh_registry = registry_kind::list;
  std::filesystem::path mesh_nodes; ///< list: a file with the nodes: names, addresses, public keys
  std::string mesh_registry_url;    ///< postgres: connection string of the database; may hold a password
  std::filesystem::path mesh_registry_url_file;                  ///< holds that string in its place
  std::filesystem::path mesh_group_file{"/etc/rbg/config.yaml"}; ///< group: the file of a role group
  std::filesystem::path mesh_keys;     ///< group: a folder with NODE.public for each node
  std::filesystem::path mesh_key;      ///< this node's secret file
  std::optional<endpoint> mesh_listen; ///< three ports from there; nothing: what the registry says
  std::string mesh_advertise;          ///< host at which others reach those ports; empty: that of mesh_listen
  bool mesh_plain = false;             ///< no keys, on loopback only

  // Limits of the gateway.
  std::size_t max_body_bytes = std::size_t{32} << 20;
  std::size_t max_header_bytes = std::size_t{16} << 10;
  unsigned max_connections = 1024;
  std::chrono::seconds header_timeout{10}; ///< to send a request's head
  std::chrono::seconds body_timeout{60};   ///< to send a request's body
  std::chrono::seconds idle_timeout{75};   ///< between two requests of a connection
  std::chrono::seconds heartbeat{15};      ///< between two signs of life on a silent stream
  std::chrono::seconds drain_deadline{30}; ///< for running turns after SIGTERM

  // Compute.
  std::string kv_type{"auto"};      ///< what keys and values are kept in: auto, fp16, bf16 or int8
  std::uint32_t kv_tokens = 16384;  ///< positions that the KV pool holds, over all sequences
  std::uint32_t step_tokens = 512;  ///< tokens that one step of the model computes at most
  std::uint32_t chunk_tokens = 512; ///< prompt tokens of a step that carries running streams too, at most
  /// What a running stream should wait for its next token while prompts are computed; 0 is no such wish.
  std::chrono::milliseconds max_inter_token{100};
  std::uint32_t max_sequences = 64; ///< prompts and running streams at the same time
  std::uint32_t max_queue = 256;    ///< requests that may wait for their turn

  // Tiers of the KV cache below the pool.
  std::uint64_t cache_host_bytes = std::uint64_t{256} << 20; ///< in host memory; 0: there is no such tier
  std::uint64_t cache_cold_bytes = std::uint64_t{4} << 30;   ///< on disk; 0: there is no such tier
  /// Times that a block must be asked for again before it is copied to the lower tiers; 0: each one is.
  std::uint8_t cache_offload_after = 1;
  std::filesystem::path cache_cold_dir; ///< of the tier on disk; empty: `cold` in the data directory

  // Prompts that one node computes for another.
  std::uint32_t handover_min_tokens = 512; ///< of a prompt that are to be computed; fewer stay where they are
  std::chrono::seconds handover_deadline{60}; ///< for the other node to have a prompt computed

  // How tokens are chosen where a request or a session does not say. A small model that draws from its whole
  // vocabulary loses the thread.
  float default_temperature = 0.8F;
  float default_top_p = 0.95F;
  std::uint32_t default_top_k = 40;
  float default_min_p = 0.05F;

  // Journal.
  journal_kind journal = journal_kind::rocksdb;
  std::string journal_url;                   ///< connection string of the database; may hold a password
  std::filesystem::path journal_url_file;    ///< holds that string in its place
  bool journal_allow_unsafe = false;         ///< run on a database that may lose what it acknowledged
  std::uint32_t commit_tokens = 16;          ///< at most so many tokens of a turn in one record
  std::chrono::seconds journal_deadline{10}; ///< for a call of the journal
  /// At start, go on from what stands before damage in the middle of the embedded journal's log.
  bool cut_damaged_journal = false;
  std::size_t journal_queue_bytes = std::size_t{64} << 20; ///< records that may wait for the disk

  /// Variables named GODWIT_… that nothing here reads: worth a warning, but an orchestrator may set such.
  std::vector<std::string> unknown_variables;

  /// Whether there are other nodes. Without a registry there is no mesh.
  bool in_mesh() const { return mesh_registry != registry_kind::list || !mesh_nodes.empty(); }
};

/// How a value is written in the file.
enum class setting_kind { text, number, real, list };

/// One thing that can be set: as `key` in the file, as GODWIT_KEY in the environment, as --key (with dashes)
/// on the command line.
struct setting {
  std::string_view key;
  setting_kind kind;
  std::string_view help;
  /// Checks the text and stores the value. @returns `invalid_argument` with the reason, without the key
  result<void> (*apply)(config& target, std::string_view text);
};

/// Every setting except `config`, the file's own path, which stands in flags and environment only.
const std::vector<setting>& settings();

using key_values = std::vector<std::pair<std::string, std::string>>;

/// Puts a configuration together: flags beat environment beat file beat defaults.
/// @param flags keys with dashes or underscores; the last of equal ones counts
/// @param environment variables; those that do not begin with GODWIT_ are left aside
/// @returns `invalid_argument` with `param` naming the key, `io` if the file cannot be read. Messages are for
/// the operator: they name the file and the line
result<config> load_config(const key_values& flags, const key_values& environment);

/// The variables of this process.
key_values process_environment();

} // namespace godwit
