#include "services/coldstore/cold_database.hpp"

#include "services/coldstore/rocks_options.hpp"
#include "services/store/rocks_defaults.hpp"

#include <rocksdb/env.h>
#include <rocksdb/metadata.h>
#include <rocksdb/table_properties.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <unordered_set>

namespace godwit {

namespace {

// Of another first letter than notes and records.
constexpr const char* format_key = "format";

std::string_view view(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

/// The reasons why a store does not open, for its operator.
error open_error(const cold_options& options, const rocksdb::Status& status) {
  const auto named = "the cold store in " + options.folder.string();
  const auto text = status.ToString();
  // A file that is named but not there comes as an error of the disk.
  if (status.IsCorruption() || status.IsPathNotFound())
    return {errc::corrupt, named + " is damaged (" + text + ")", "", ""};
  if (text.find("While lock file") != std::string::npos
      || text.find("lock hold by current process") != std::string::npos)
    return {errc::conflict, named + " is in use by another process", "", ""};
  if (text.find("Read-only file system") != std::string::npos
      || text.find("Permission denied") != std::string::npos)
    return {errc::permission, named + " cannot be written: " + text, "", ""};
  auto reason = to_cold_error(status);
  reason.message = named + " cannot be opened (" + text + ")";
  return reason;
}

rocksdb::ReadOptions reading() {
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  return options;
}

} // namespace

error to_cold_error(const rocksdb::Status& status) {
  if (status.IsNoSpace())
    return {errc::resource_exhausted, "no space is left for the cold store", "", ""};
  if (status.IsCorruption())
    return {errc::corrupt, "a part of the cold store is damaged", "", ""};
  return {errc::io, "the disk of the cold store refused", "", ""};
}

std::uint64_t cold_database::usage::blob_bytes() const {
  return std::accumulate(blobs.begin(), blobs.end(), std::uint64_t{0},
    [](std::uint64_t sum, const file& one) { return sum + one.bytes; });
}

std::uint64_t cold_database::usage::garbage_bytes() const {
  return std::accumulate(blobs.begin(), blobs.end(), std::uint64_t{0},
    [](std::uint64_t sum, const file& one) { return sum + one.garbage; });
}

result<std::unique_ptr<cold_database>> cold_database::open(const cold_options& options, bool merge) {
  std::unique_ptr<cold_database> made(new cold_database());
  made->at_point_ = options.at_point;
  made->direct_bytes_ = options.write_buffer_bytes / 4;
  rocksdb::DB* db = nullptr;
  const auto status = rocksdb::DB::Open(cold_rocks_options(options, merge), options.folder.string(), &db);
  if (!status.ok())
    return tl::unexpected<error>(open_error(options, status));
  made->db_.reset(db);
  if (auto good = made->check_format(); !good) {
    auto reason = good.error();
    reason.message = "the cold store in " + options.folder.string() + " " + reason.message;
    return tl::unexpected<error>(std::move(reason));
  }
  return made;
}

result<void> cold_database::empty(const cold_options& options) {
  const auto status = rocksdb::DestroyDB(options.folder.string(), cold_rocks_options(options, false));
  if (!status.ok())
    return tl::unexpected<error>(open_error(options, status));
  return {};
}

bool cold_database::disk_takes_writes(const cold_options& options, std::size_t bytes) {
  const auto least = std::min(options.write_buffer_bytes, std::size_t{1} << 20);
  return rocks_disk_takes_writes(options.env, options.folder, std::max(least, bytes));
}

cold_database::~cold_database() {
  if (db_ != nullptr)
    static_cast<void>(db_->Close());
}

result<void> cold_database::check_format() {
  std::string text;
  auto status = db_->Get(reading(), format_key, &text);
  if (status.IsNotFound()) {
    text = std::to_string(cold_codec::format_version);
    status = db_->Put({}, format_key, text);
  }
  if (!status.ok()) {
    auto reason = to_cold_error(status);
    reason.message = "cannot be read (" + status.ToString() + ")";
    return tl::unexpected<error>(std::move(reason));
  }
  std::uint32_t version = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (code != std::errc() || end != text.data() + text.size() || version == 0)
    return fail(errc::corrupt, "does not say which format it has");
  if (version > cold_codec::format_version)
    return fail(errc::unsupported, "has format " + text + "; this version of godwit knows formats up to "
                                     + std::to_string(cold_codec::format_version));
  return {};
}

result<cold_database::notes> cold_database::read_notes() const {
  notes found;
  auto options = reading();
  options.fill_cache = false;
  const std::string first(1, cold_codec::note_kind);
  const std::string behind(1, cold_codec::note_kind + 1);
  const rocksdb::Slice bound(behind);
  options.iterate_upper_bound = &bound;
  const std::unique_ptr<rocksdb::Iterator> place(db_->NewIterator(options));
  for (place->Seek(first); place->Valid(); place->Next()) {
    const auto identity = cold_codec::identity_of(view(place->key()));
    auto note = identity ? cold_codec::open_note(*identity, view(place->value()))
                         : result<cold_codec::note>(fail(errc::corrupt, ""));
    if (note)
      found.good.push_back(std::move(*note));
    else
      found.damaged.emplace_back(view(place->key()));
  }
  if (!place->status().ok())
    return tl::unexpected<error>(to_cold_error(place->status()));
  return found;
}

rocksdb::Status cold_database::read_record(
  std::uint32_t place, const block_identity& identity, rocksdb::PinnableSlice& into) const {
  auto options = reading();
  return db_->Get(options, db_->DefaultColumnFamily(), cold_codec::record_key(place, identity), &into);
}

void cold_database::put(rocksdb::WriteBatch& batch, const cold_codec::note& note,
  const cold_codec::header& header, std::span<const std::byte> pages) {
  const auto key = cold_codec::record_key(note.place, note.identity);
  const auto head = cold_codec::seal_header(header, pages);
  const rocksdb::Slice keys[] = {key};
  const rocksdb::Slice parts[] = {head, {reinterpret_cast<const char*>(pages.data()), pages.size()}};
  static_cast<void>(batch.Put(rocksdb::SliceParts(keys, 1), rocksdb::SliceParts(parts, 2)));
  static_cast<void>(batch.Put(cold_codec::note_key(note.identity), cold_codec::seal_note(note)));
}

void cold_database::drop(rocksdb::WriteBatch& batch, std::uint32_t place, const block_identity& identity) {
  static_cast<void>(batch.Delete(cold_codec::record_key(place, identity)));
  static_cast<void>(batch.Delete(cold_codec::note_key(identity)));
}

void cold_database::drop_record(
  rocksdb::WriteBatch& batch, std::uint32_t place, const block_identity& identity) {
  static_cast<void>(batch.Delete(cold_codec::record_key(place, identity)));
}

void cold_database::drop_damaged(rocksdb::WriteBatch& batch, const notes& found) const {
  if (found.damaged.empty())
    return;
  for (const auto& key : found.damaged)
    static_cast<void>(batch.Delete(key));
  std::unordered_set<std::string> named;
  for (const auto& note : found.good)
    named.insert(cold_codec::record_key(note.place, note.identity));
  auto options = reading();
  options.fill_cache = false;
  const std::string first(1, cold_codec::record_kind);
  const std::string behind(1, cold_codec::record_kind + 1);
  const rocksdb::Slice bound(behind);
  options.iterate_upper_bound = &bound;
  const std::unique_ptr<rocksdb::Iterator> place(db_->NewIterator(options));
  for (place->Seek(first); place->Valid(); place->Next())
    if (!named.contains(place->key().ToString()))
      static_cast<void>(batch.Delete(place->key()));
}

void cold_database::note_uses(std::span<const cold_index::use> uses) {
  rocksdb::WriteBatch batch;
  for (const auto& [identity, hits, worth] : uses) {
    const auto key = cold_codec::note_key(identity);
    rocksdb::PinnableSlice value;
    if (!db_->Get(reading(), db_->DefaultColumnFamily(), key, &value).ok())
      continue;
    auto note = cold_codec::open_note(identity, view(value));
    if (!note)
      continue;
    note->hits = hits;
    note->worth = worth;
    static_cast<void>(batch.Put(key, cold_codec::seal_note(*note)));
  }
  if (batch.Count() != 0)
    static_cast<void>(db_->Write({}, &batch));
}

rocksdb::Status cold_database::write(rocksdb::WriteBatch& batch) {
  rocksdb::WriteOptions options;
  options.disableWAL = batch.GetDataSize() >= direct_bytes_;
  auto status = db_->Write(options, &batch);
  if (status.ok()) {
    point(cold_point::logged);
    if (options.disableWAL) {
      rocksdb::FlushOptions flush;
      flush.allow_write_stall = true;
      status = db_->Flush(flush);
    }
  }
  if (status.ok())
    point(cold_point::committed);
  return status;
}

cold_database::usage cold_database::used() const {
  rocksdb::ColumnFamilyMetaData state;
  db_->GetColumnFamilyMetaData(&state);
  usage out;
  out.table_bytes = state.size;
  std::ranges::sort(state.blob_files, {}, &rocksdb::BlobMetaData::blob_file_number);
  for (const auto& file : state.blob_files)
    out.blobs.push_back({file.blob_file_size, file.garbage_blob_bytes});
  return out;
}

bool cold_database::has_deletions() const {
  rocksdb::TablePropertiesCollection tables;
  if (!db_->GetPropertiesOfAllTables(&tables).ok())
    return true;
  return std::ranges::any_of(tables, [](const auto& table) { return table.second->num_deletions != 0; });
}

rocksdb::Status cold_database::merge(std::size_t move, std::atomic<bool>& cancelled) {
  rocksdb::CompactRangeOptions options;
  options.canceled = &cancelled;
  options.allow_write_stall = true;
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
  options.blob_garbage_collection_policy = rocksdb::BlobGarbageCollectionPolicy::kDisable;
  if (move != 0) {
    // RocksDB takes a part of the files and rounds down.
    const auto files = std::max(used().blobs.size(), move);
    options.blob_garbage_collection_policy = rocksdb::BlobGarbageCollectionPolicy::kForce;
    options.blob_garbage_collection_age_cutoff =
      std::min(1.0, (static_cast<double>(move) + 0.5) / static_cast<double>(files));
  }
  return db_->CompactRange(options, nullptr, nullptr);
}

void cold_database::merge_again() {
  static_cast<void>(db_->EnableAutoCompaction({db_->DefaultColumnFamily()}));
}

} // namespace godwit
