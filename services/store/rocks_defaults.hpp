#pragma once

#include <cstddef>
#include <filesystem>

namespace rocksdb {
class Env;
struct DBOptions;
} // namespace rocksdb

namespace godwit {

/// What all databases of a node have alike: few threads and files, no statistics of their own, and no way
/// back after an error but ours.
/// @param open_files that it may keep open
void set_rocks_defaults(rocksdb::DBOptions& database, int open_files);

/// Whether a file of so many bytes can be written and synced in a database's folder.
/// @param env null: the system's
bool rocks_disk_takes_writes(rocksdb::Env* env, const std::filesystem::path& folder, std::size_t bytes);

} // namespace godwit
