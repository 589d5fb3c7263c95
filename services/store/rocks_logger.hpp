#pragma once

#include <functional>
#include <memory>
#include <string_view>

namespace rocksdb {
class Logger;
}

namespace godwit {

/// Passes RocksDB's warnings on, each as one line; what it says beside them is dropped, and no log file is
/// written. @param warn called on any thread; empty: warnings are dropped too
std::shared_ptr<rocksdb::Logger> rocks_logger(std::function<void(std::string_view)> warn);

} // namespace godwit
