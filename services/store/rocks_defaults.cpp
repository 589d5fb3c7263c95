#include "services/store/rocks_defaults.hpp"

#include <rocksdb/env.h>
#include <rocksdb/options.h>

#include <memory>
#include <string>

namespace godwit {

void set_rocks_defaults(rocksdb::DBOptions& database, int open_files) {
  database.max_bgerror_resume_count = 0;
  database.max_open_files = open_files;
  database.max_file_opening_threads = 1;
  database.max_background_jobs = 2;
  database.stats_dump_period_sec = 0;
  database.stats_persist_period_sec = 0;
  database.skip_stats_update_on_db_open = true;
}

bool rocks_disk_takes_writes(rocksdb::Env* env, const std::filesystem::path& folder, std::size_t bytes) {
  const std::string content(bytes, '\0');
  if (env == nullptr)
    env = rocksdb::Env::Default();
  const auto name = (folder / "probe").string();
  std::unique_ptr<rocksdb::WritableFile> file;
  bool good = env->NewWritableFile(name, &file, {}).ok();
  good = good && file->Append(content).ok() && file->Sync().ok();
  good = good && file->Close().ok();
  file.reset();
  static_cast<void>(env->DeleteFile(name));
  return good;
}

} // namespace godwit
