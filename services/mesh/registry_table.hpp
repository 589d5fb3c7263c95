#pragma once

#include "messages/result.hpp"
#include "services/mesh/registry_view.hpp"
#include "services/postgres/connection.hpp"
#include "services/postgres/tables.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The table of nodes in a database: what it is, and what is said to it.
///
///     nodes   name (key), holder, incarnation, beat, letters, bulk, events, public_key, roles, models,
///             fingerprints, capacity
///
/// `holder` tells processes apart; `beat` is of the database's clock; `public_key` is empty where sockets
/// have none.
namespace godwit::registry_table {

/// Most nodes that are read; as many as a list in a file may have.
inline constexpr std::size_t most_nodes = 4096;

postgres::versioned_tables tables();
/// What is prepared on a connection: names and texts.
std::vector<std::pair<std::string, std::string>> statements(std::string_view schema);

/// Listens to news of nodes; their text is the node's name.
postgres::statement listen(std::string_view schema);

/// Says that the process lives. Returns a row (incarnation) if it holds the name and its last beat is not
/// older than the limit.
postgres::statement beat(const node_name& name, std::string_view holder, std::chrono::milliseconds limit);

/// Takes a name, or changes what is said of a node, and tells the others. Returns a row (incarnation) unless
/// another process holds the name and has beaten within the limit.
/// The incarnation rises whenever the name is taken anew, also by a process that has missed its time.
postgres::statement claim(const node_record& node, std::string_view holder, std::chrono::milliseconds limit);

/// Who holds a name: holder, and the time of its beat in microseconds since 1970.
postgres::statement holder_of(const node_name& name);

/// All nodes, those that have beaten last first; see node_of().
postgres::statement list();

/// Gives the name up and tells the others.
postgres::statement leave(const node_name& name, std::string_view holder);

/// Deletes what has not beaten for a day.
postgres::statement sweep();

inline constexpr std::size_t columns = 11;

/// A row of list(), checked: what stands there may be anybody's.
/// @param plain whether nodes have no keys; then they have to be on loopback
/// @returns `corrupt`, the message with the node's name if it is one
result<tabled_node> node_of(const std::array<postgres::field, columns>& row, bool plain);

} // namespace godwit::registry_table
