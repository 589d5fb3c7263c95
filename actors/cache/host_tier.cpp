#include "actors/cache/host_tier.hpp"

#include "messages/check.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <string>

namespace godwit {

result<std::unique_ptr<host_tier>> host_tier::create(
  std::size_t block_bytes, std::uint64_t budget, std::uint32_t doubles_at) {
  GODWIT_CHECK(block_bytes > 0);
  if (budget < block_bytes)
    return fail(errc::invalid_argument,
      "the host tier's budget of " + std::to_string(budget) + " bytes holds no block, which takes "
        + std::to_string(block_bytes),
      "cache_host_bytes");
  constexpr std::uint64_t most_places = std::uint64_t{1} << 31;
  const auto places = static_cast<std::uint32_t>(std::min(budget / block_bytes, most_places));
  auto* memory = ::mmap(nullptr, places * block_bytes, PROT_READ | PROT_WRITE,
    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return fail(errc::resource_exhausted,
      "the system refuses " + std::to_string(places * block_bytes)
        + " bytes of address space for the host tier",
      "cache_host_bytes");
  return std::unique_ptr<host_tier>(
    new host_tier(static_cast<std::byte*>(memory), block_bytes, places, doubles_at));
}

host_tier::host_tier(
  std::byte* memory, std::size_t block_bytes, std::uint32_t places, std::uint32_t doubles_at)
  : memory_(memory), block_bytes_(block_bytes), index_(doubles_at), places_(places) {
  free_.reserve(places);
  for (auto where = places; where > 0; --where)
    free_.push_back(where - 1);
}

host_tier::~host_tier() {
  ::munmap(memory_, places_.size() * block_bytes_);
}

host_tier::place host_tier::find(const block_identity& identity) const {
  const auto slot = index_.find(identity);
  if (slot == block_index::none || !places_[index_[slot].where].full)
    return nowhere;
  return index_[slot].where;
}

std::size_t host_tier::known(std::span<const block_identity> chain) const {
  const auto end =
    std::find_if(chain.begin(), chain.end(), [this](const auto& block) { return find(block) == nowhere; });
  return static_cast<std::size_t>(end - chain.begin());
}

/// Gives up the least worthy block that may go and is not the one that a new block shall follow.
bool host_tier::make_room(block_index::slot parent) {
  std::vector<block_index::slot> aside;
  bool done = false;
  while (!done) {
    const auto worst = index_.worst();
    if (worst == block_index::none)
      break;
    const auto where = index_[worst].where;
    if (worst == parent || places_[where].holders > 0) {
      index_.set_aside(worst);
      aside.push_back(worst);
      continue;
    }
    index_.give_up(worst);
    places_[where] = {};
    free_.push_back(where);
    ++evictions_;
    done = true;
  }
  for (const auto slot : aside)
    index_.put_back(slot);
  return done;
}

host_tier::place host_tier::reserve(const block_identity& identity, const block_identity* parent) {
  GODWIT_CHECK(!has(identity));
  const auto before = parent == nullptr ? block_index::none : index_.find(*parent);
  if (parent != nullptr && before == block_index::none)
    return nowhere;
  if (free_.empty() && !make_room(before))
    return nowhere;
  const auto where = free_.back();
  free_.pop_back();
  const auto slot = index_.add(identity, where, before);
  index_.added(slot);
  places_[where] = {slot, 1, false};
  return where;
}

void host_tier::filled(place where) {
  places_[where].full = true;
  let_go(where);
}

void host_tier::let_go(place where) {
  GODWIT_CHECK(places_[where].holders > 0);
  --places_[where].holders;
}

void host_tier::asked(std::span<const block_identity> chain) {
  auto last = block_index::none;
  for (const auto& block : chain) {
    const auto slot = index_.find(block);
    if (slot == block_index::none)
      break;
    index_.visit(slot);
    last = slot;
  }
  index_.visited(last);
}

bool host_tier::erase(const block_identity& identity) {
  const auto slot = index_.find(identity);
  if (slot == block_index::none || index_[slot].children > 0)
    return false;
  const auto where = index_[slot].where;
  if (places_[where].holders > 0)
    return false;
  index_.erase(slot);
  places_[where] = {};
  free_.push_back(where);
  return true;
}

} // namespace godwit
