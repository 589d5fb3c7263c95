#pragma once

#include "services/coldstore/cold_options.hpp"

#include <rocksdb/options.h>

namespace godwit {

/// RocksDB's settings for a cold store. @param merge false: no table is merged on its own
rocksdb::Options cold_rocks_options(const cold_options& options, bool merge);

} // namespace godwit
