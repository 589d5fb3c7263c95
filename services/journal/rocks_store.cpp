#include "services/journal/rocks_store.hpp"

#include "actors/session/journal_rules.hpp"
#include "services/journal/codec.hpp"
#include "services/journal/rocks_options.hpp"
#include "services/store/rocks_defaults.hpp"

#include <rocksdb/cache.h>
#include <rocksdb/env.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace godwit {

namespace {

constexpr std::size_t block_cache_bytes = std::size_t{8} << 20;
constexpr const char* format_key = "format";

std::string_view view(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

/// The reasons why a journal does not open, for its operator.
error open_error(const rocksdb::Status& status) {
  const auto detail = " (" + status.ToString() + ")";
  if (status.IsCorruption())
    return {errc::corrupt,
      "the journal is damaged and was left as it is; restore it, or start with the setting "
      "journal_damaged_log = \"cut\" to lose every record behind the damage"
        + detail,
      "", ""};
  if (status.IsIOError() && status.ToString().find("lock") != std::string::npos)
    return {errc::conflict, "the journal is in use by another process", "", ""};
  auto reason = to_error(status);
  reason.message = "the journal cannot be opened" + detail;
  return reason;
}

/// An earlier program must not touch what a later one added.
result<void> check_families(
  const rocksdb::DBOptions& options, const std::string& folder, const std::array<std::string, 3>& known) {
  if (!options.env->FileExists(folder + "/CURRENT").ok())
    return {};
  std::vector<std::string> names;
  if (const auto status = rocksdb::DB::ListColumnFamilies(options, folder, &names); !status.ok())
    return tl::unexpected<error>(open_error(status));
  for (const auto& name : names)
    if (std::find(known.begin(), known.end(), name) == known.end())
      return fail(errc::unsupported,
        "the journal was written by a newer version of godwit: it has a part \"" + name + "\"");
  return {};
}

} // namespace

error to_error(const rocksdb::Status& status) {
  if (status.IsNoSpace())
    return {errc::resource_exhausted, "no space is left for the journal", "", ""};
  if (status.IsTimedOut())
    return {errc::deadline, "the disk did not answer in time", "", ""};
  if (status.IsCorruption())
    return {errc::corrupt, "a part of the journal is damaged", "", ""};
  if (status.IsShutdownInProgress())
    return journal_closed().value();
  return {errc::io, "the disk refused", "", ""};
}

result<std::unique_ptr<rocks_store>> rocks_store::open(const rocks_journal_options& options, mode how) {
  const auto database = rocks_database_options(options);
  const auto cache = rocksdb::NewLRUCache(block_cache_bytes, 2);
  const auto folder = options.folder.string();
  const std::array<std::string, 3> names{rocksdb::kDefaultColumnFamilyName, "records", "heads"};
  if (auto good = check_families(database, folder, names); !good)
    return fail(good);

  const bool compaction = how == mode::normal;
  const std::vector<rocksdb::ColumnFamilyDescriptor> families{
    {names[0], rocks_family_options(options.write_buffer_bytes, compaction, cache)},
    {names[1], rocks_family_options(options.write_buffer_bytes, compaction, cache)},
    {names[2], rocks_family_options(options.write_buffer_bytes, compaction, cache)}};
  std::unique_ptr<rocks_store> store(new rocks_store(options.queue.deadline));
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  const auto status = how == mode::read_only
                        ? rocksdb::DB::OpenForReadOnly(database, folder, families, &handles, &db)
                        : rocksdb::DB::Open(database, folder, families, &handles, &db);
  if (!status.ok())
    return tl::unexpected<error>(open_error(status));
  store->db_.reset(db);
  store->meta_ = handles[0];
  store->records_ = handles[1];
  store->heads_ = handles[2];
  if (auto good = store->check_format(how); !good)
    return fail(good);
  return store;
}

rocks_store::~rocks_store() {
  if (db_ == nullptr)
    return;
  for (auto* family : {meta_, records_, heads_})
    static_cast<void>(db_->DestroyColumnFamilyHandle(family));
  static_cast<void>(db_->Close());
}

result<void> rocks_store::check_format(mode how) {
  std::string text;
  const auto status = db_->Get(reading(), meta_, format_key, &text);
  if (status.IsNotFound()) {
    if (how == mode::read_only)
      return {};
    rocksdb::WriteBatch batch;
    batch.Put(meta_, format_key, std::to_string(journal_codec::format_version));
    if (const auto written = write(batch); !written.ok())
      return tl::unexpected<error>(open_error(written));
    return {};
  }
  if (!status.ok())
    return tl::unexpected<error>(open_error(status));
  std::uint32_t version = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (code != std::errc() || end != text.data() + text.size() || version == 0)
    return fail(errc::corrupt, "the journal does not say which format it has");
  if (version > journal_codec::format_version)
    return fail(errc::unsupported, "the journal has format " + std::to_string(version)
                                     + "; this version of godwit knows formats up to "
                                     + std::to_string(journal_codec::format_version));
  return {};
}

rocksdb::ReadOptions rocks_store::reading() const {
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  const auto now = std::chrono::microseconds(db_->GetEnv()->NowMicros());
  options.deadline = now + std::chrono::duration_cast<std::chrono::microseconds>(deadline_);
  return options;
}

result<std::optional<journal_head>> rocks_store::head(const session_id& session) const {
  rocksdb::PinnableSlice value;
  const auto status = db_->Get(reading(), heads_, session.value, &value);
  if (status.IsNotFound())
    return std::optional<journal_head>();
  if (!status.ok())
    return tl::unexpected<error>(to_error(status));
  auto head = journal_codec::open_head(session, view(value));
  if (!head)
    return fail(head);
  return std::optional(std::move(*head));
}

result<std::vector<placed_record>> rocks_store::read(
  const session_id& session, sequence_number from, std::size_t limit) const {
  // Head and records of the same moment.
  rocksdb::ManagedSnapshot snapshot(db_.get());
  auto options = reading();
  options.snapshot = snapshot.snapshot();
  rocksdb::PinnableSlice value;
  if (const auto status = db_->Get(options, heads_, session.value, &value); !status.ok())
    return status.IsNotFound() ? no_such_session() : tl::unexpected<error>(to_error(status));
  const auto head = journal_codec::open_head(session, view(value));
  if (!head)
    return fail(head);

  std::vector<placed_record> found;
  const auto upper = journal_codec::record_key(session, head->sequence + 1);
  const rocksdb::Slice bound(upper);
  options.iterate_upper_bound = &bound;
  auto next = std::max<sequence_number>(from, 1);
  if (next > head->sequence)
    return found;
  const std::unique_ptr<rocksdb::Iterator> place(db_->NewIterator(options, records_));
  for (place->Seek(journal_codec::record_key(session, next)); next <= head->sequence && found.size() < limit;
       place->Next(), ++next) {
    if (!place->Valid())
      return place->status().ok() ? fail(errc::corrupt, "a record is missing")
                                  : tl::unexpected<error>(to_error(place->status()));
    if (journal_codec::sequence_of(session, view(place->key())) != next)
      return fail(errc::corrupt, "a record is missing");
    auto record = journal_codec::open_record(session, next, view(place->value()));
    if (!record)
      return fail(record);
    found.push_back(std::move(*record));
  }
  return found;
}

result<std::vector<journal_head>> rocks_store::list(const session_id& after, std::size_t limit) const {
  std::vector<journal_head> heads;
  const std::unique_ptr<rocksdb::Iterator> place(db_->NewIterator(reading(), heads_));
  for (place->Seek(after.value); place->Valid() && heads.size() < limit; place->Next()) {
    const session_id session(std::string(view(place->key())));
    if (session == after)
      continue;
    auto head = journal_codec::open_head(session, view(place->value()));
    if (head)
      heads.push_back(std::move(*head));
    else
      heads.push_back({.session = session, .tenant = {}, .owner = {}, .quarantined = true});
  }
  if (!place->status().ok())
    return tl::unexpected<error>(to_error(place->status()));
  return heads;
}

void rocks_store::put(rocksdb::WriteBatch& batch, const journal_head& head) const {
  batch.Put(heads_, head.session.value, journal_codec::seal_head(head));
}

void rocks_store::put(rocksdb::WriteBatch& batch, const session_id& session, sequence_number sequence,
  epoch_t epoch, const journal_record& record) const {
  batch.Put(records_, journal_codec::record_key(session, sequence),
    journal_codec::seal_record(session, sequence, epoch, record));
}

void rocks_store::erase(rocksdb::WriteBatch& batch, const session_id& session) const {
  // Every record that could be there, those behind a damaged head too.
  batch.DeleteRange(records_, journal_codec::record_key(session, 0),
    journal_codec::record_key(session, static_cast<sequence_number>(-1)));
  batch.Delete(heads_, session.value);
}

rocksdb::Status rocks_store::write(rocksdb::WriteBatch& batch) {
  rocksdb::WriteOptions options;
  options.sync = true;
  return db_->Write(options, &batch);
}

bool rocks_store::disk_takes_writes(const rocks_journal_options& options) {
  // About as much as opening writes: what is left in the log goes to a table.
  return rocks_disk_takes_writes(options.env, options.folder, options.write_buffer_bytes);
}

} // namespace godwit
