#include "services/coldstore/inventory.hpp"

#include "services/coldstore/cold_database.hpp"
#include "services/coldstore/key_file.hpp"

#include <array>
#include <cstdio>
#include <memory>
#include <utility>

namespace godwit {

namespace {

/// The store of a folder, opened without a node.
struct open_store {
  std::unique_ptr<cold_database> database;
  cold_database::notes notes;
};

cold_options options_for(const std::filesystem::path& folder) {
  cold_options options;
  options.folder = folder;
  return options;
}

result<void> check_folder(const std::filesystem::path& folder) {
  if (!is_cold_store(folder))
    return fail(errc::not_found, "there is no cold store in " + folder.string());
  return {};
}

tl::unexpected<error> in_use(const std::filesystem::path& folder) {
  return fail(
    errc::conflict, "a node is using the cold store in " + folder.string() + "; stop it and try again");
}

tl::unexpected<error> beyond_records(error reason) {
  reason.code = errc::corrupt;
  reason.message += "; clear it, or start a node on it, which empties it";
  return tl::unexpected<error>(std::move(reason));
}

result<open_store> open(const std::filesystem::path& folder) {
  if (auto good = check_folder(folder); !good)
    return fail(good);
  auto database = cold_database::open(options_for(folder));
  if (!database) {
    if (database.error().code == errc::conflict)
      return in_use(folder);
    return database.error().code == errc::corrupt ? beyond_records(database.error()) : fail(database);
  }
  auto notes = (*database)->read_notes();
  if (!notes)
    return notes.error().code == errc::corrupt ? beyond_records(notes.error()) : fail(notes);
  return open_store{std::move(*database), std::move(*notes)};
}

std::string hex(const cold_codec::digest& of) {
  std::array<char, 33> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(of.high),
    static_cast<unsigned long long>(of.low));
  return text.data();
}

void add(cold_share& to, const cold_codec::note& note) {
  ++to.blocks;
  to.bytes += note.bytes;
}

/// Writes deletions, and moves what shares a file with what was deleted, so that the files go.
result<void> write_and_tidy(cold_database& to, rocksdb::WriteBatch& batch) {
  // An earlier run may have deleted and not come to the end of this.
  if (batch.Count() == 0 && to.used().garbage_bytes() == 0 && !to.has_deletions())
    return {};
  std::atomic<bool> never{false};
  rocksdb::Status status;
  if (batch.Count() != 0)
    status = to.write(batch);
  if (status.ok())
    status = to.merge(0, never);
  std::size_t move = 0;
  const auto blobs = to.used().blobs;
  for (std::size_t i = 0; i < blobs.size(); ++i)
    if (blobs[i].garbage != 0)
      move = i + 1;
  if (status.ok() && move != 0)
    status = to.merge(move, never);
  if (!status.ok())
    return tl::unexpected<error>(to_cold_error(status));
  return {};
}

} // namespace

result<cold_inventory> list_cold(const std::filesystem::path& folder) {
  const auto store = open(folder);
  if (!store)
    return fail(store);
  cold_inventory out;
  for (const auto& note : store->notes.good) {
    add(out.all, note);
    add(out.tenants[note.tenant], note);
    add(out.models[hex(note.model)], note);
  }
  out.damaged = store->notes.damaged.size();
  const auto used = store->database->used();
  out.disk_bytes = used.blob_bytes() + used.table_bytes;
  out.garbage_bytes = used.garbage_bytes();
  return out;
}

result<cold_verdict> verify_cold(const std::filesystem::path& folder) {
  const auto store = open(folder);
  if (!store)
    return fail(store);
  cold_verdict out;
  out.damaged = store->notes.damaged.size();
  rocksdb::WriteBatch batch;
  store->database->drop_damaged(batch, store->notes);
  for (const auto& note : store->notes.good) {
    rocksdb::PinnableSlice value;
    const auto status = store->database->read_record(note.place, note.identity, value);
    // What the disk does not give now may be good.
    if (!status.ok() && !status.IsNotFound() && !status.IsCorruption() && !status.IsPathNotFound())
      return fail(errc::io, "the disk refuses to read a block: " + status.ToString());
    const std::string_view stored(value.data(), value.size());
    if (status.ok() && cold_codec::open_record(note.identity, stored)) {
      add(out.good, note);
      continue;
    }
    cold_database::drop(batch, note.place, note.identity);
    ++out.damaged;
  }
  if (auto tidied = write_and_tidy(*store->database, batch); !tidied)
    return fail(tidied);
  return out;
}

result<cold_cleared> clear_cold(
  const std::filesystem::path& folder, const std::optional<std::string>& tenant) {
  if (auto good = check_folder(folder); !good)
    return fail(good);
  auto store = open(folder);
  // Only damage is mended by emptying the folder.
  if (!store && (tenant || store.error().code != errc::corrupt))
    return fail(store);
  cold_cleared out;
  out.counted = store.has_value();
  rocksdb::WriteBatch batch;
  if (store)
    for (const auto& note : store->notes.good)
      if (!tenant || note.tenant == *tenant) {
        add(out, note);
        cold_database::drop(batch, note.place, note.identity);
      }
  if (tenant) {
    if (auto tidied = write_and_tidy(*store->database, batch); !tidied)
      return fail(tidied);
    return out;
  }
  store = fail(errc::cancelled, ""); // closes it
  if (auto emptied = cold_database::empty(options_for(folder)); !emptied) {
    if (emptied.error().code == errc::conflict)
      return in_use(folder);
    return fail(emptied);
  }
  return out;
}

} // namespace godwit
