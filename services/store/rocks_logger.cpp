#include "services/store/rocks_logger.hpp"

#include <rocksdb/env.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <string>
#include <utility>

namespace godwit {

namespace {

class warning_logger final : public rocksdb::Logger {
 public:
  explicit warning_logger(std::function<void(std::string_view)> warn)
    : Logger(rocksdb::InfoLogLevel::WARN_LEVEL), warn_(std::move(warn)) {}

  using Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    if (!warn_)
      return;
    std::array<char, 1024> line{};
    if (std::vsnprintf(line.data(), line.size(), format, arguments) > 0)
      warn_(std::string("RocksDB: ") + line.data());
  }
  void LogHeader(const char* /*format*/, va_list /*arguments*/) override {}
  std::size_t GetLogFileSize() const override { return 0; }

 protected:
  rocksdb::Status CloseImpl() override { return rocksdb::Status::OK(); }

 private:
  std::function<void(std::string_view)> warn_;
};

} // namespace

std::shared_ptr<rocksdb::Logger> rocks_logger(std::function<void(std::string_view)> warn) {
  return std::make_shared<warning_logger>(std::move(warn));
}

} // namespace godwit
