#include "tools/godwit/cache_commands.hpp"

#include "services/coldstore/inventory.hpp"
#include "services/coldstore/key_file.hpp"

#include <fmt/core.h>

namespace godwit::cli {

using nlohmann::ordered_json;

namespace {

std::filesystem::path store_in(const std::filesystem::path& folder) {
  const auto below = folder / "cold";
  return !is_cold_store(folder) && is_cold_store(below) ? below : folder;
}

std::string megabytes(std::uint64_t bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / 1e6);
}

ordered_json share_json(const cold_share& share) {
  return {{"blocks", share.blocks}, {"bytes", share.bytes}};
}

} // namespace

int cache_stats(const settings& how, const std::filesystem::path& folder) {
  const auto found = list_cold(store_in(folder));
  if (!found)
    return report(found.error(), how.json);
  auto out = share_json(found->all);
  out["damaged"] = found->damaged;
  out["disk_bytes"] = found->disk_bytes;
  out["garbage_bytes"] = found->garbage_bytes;
  out["tenants"] = ordered_json::object();
  out["models"] = ordered_json::object();
  std::vector<std::vector<std::string>> rows{{"", "BLOCKS", "MB"}};
  for (const auto& [name, share] : found->tenants) {
    out["tenants"][name] = share_json(share);
    rows.push_back({"tenant " + name, std::to_string(share.blocks), megabytes(share.bytes)});
  }
  for (const auto& [name, share] : found->models) {
    out["models"][name] = share_json(share);
    rows.push_back({"model " + name, std::to_string(share.blocks), megabytes(share.bytes)});
  }
  if (how.json) {
    print_json(out);
    return exit_ok;
  }
  rows.push_back({"all", std::to_string(found->all.blocks), megabytes(found->all.bytes)});
  print_table(rows);
  fmt::print("on disk {} MB, of which {} MB belong to deleted blocks\n", megabytes(found->disk_bytes),
    megabytes(found->garbage_bytes));
  if (found->damaged != 0)
    fmt::print("{} notes of blocks are damaged; `godwit cache verify` deletes them\n", found->damaged);
  return exit_ok;
}

int cache_verify(const settings& how, const std::filesystem::path& folder) {
  const auto verdict = verify_cold(store_in(folder));
  if (!verdict)
    return report(verdict.error(), how.json);
  if (how.json) {
    auto out = share_json(verdict->good);
    out["damaged"] = verdict->damaged;
    print_json(out);
  } else {
    fmt::print("{} blocks ({} MB) are good, {} were damaged and are deleted\n", verdict->good.blocks,
      megabytes(verdict->good.bytes), verdict->damaged);
  }
  return verdict->damaged == 0 ? exit_ok : exit_failed;
}

int cache_clear(
  const settings& how, const std::filesystem::path& folder, const std::optional<std::string>& tenant) {
  const auto gone = clear_cold(store_in(folder), tenant);
  if (!gone)
    return report(gone.error(), how.json);
  if (how.json) {
    auto out = share_json(*gone);
    out["counted"] = gone->counted;
    print_json(out);
  } else if (!gone->counted) {
    fmt::print("all blocks are deleted; the store was too damaged to count them\n");
  } else {
    fmt::print("{} blocks ({} MB) are deleted\n", gone->blocks, megabytes(gone->bytes));
  }
  return exit_ok;
}

} // namespace godwit::cli
