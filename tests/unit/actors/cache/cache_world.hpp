#pragma once

#include "actors/cache/approximate_cache.hpp"
#include "actors/cache/prefix_cache.hpp"
#include "kernels/memory/page_pool.hpp"
#include "kernels/memory/sequence.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace godwit::test {

/// One operation, as numbers that mean something in any state, so that a history from which operations are
/// taken out is a history.
struct operation {
  std::uint32_t kind = 0;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
};

/// A pool, sequences over it, an index of exact blocks and one of approximate states, beside a model that has
/// no pages: a sequence is a list of values and, for each head, a list of positions. Any disagreement throws.
class cache_world {
 public:
  static constexpr kv_shape shape{.layers = 2, .kv_heads = 2, .head_dim = 2};
  static constexpr std::uint32_t lists = 4;
  static constexpr std::uint32_t blocks = 28;
  static constexpr std::size_t most_subjects = 6;
  static constexpr std::size_t most_states = 5;

  void run(const operation& what) {
    if (subjects_.empty() || what.kind % 16 == 0)
      open(what.a, what.b);
    else
      change(what, what.a % subjects_.size());
    if (subjects_.size() > most_subjects)
      subjects_.pop_front();
  }

  /// Compares everything with the model.
  void verify() const {
    std::map<page_id, std::uint32_t> held;
    for (const auto& each : subjects_) {
      verify(each.real, each.is);
      for (std::uint32_t list = 0; list < lists; ++list)
        for (const auto page : each.real.pages(list / 2, list % 2))
          ++held[page];
    }
    // What is held beyond that the two indices hold, as many references as they say.
    std::uint64_t others = 0;
    std::uint64_t used = 0;
    std::uint32_t free = 0;
    for (block_id block = 0; block < blocks; ++block) {
      std::uint32_t here = 0;
      for (page_id page = block * lists; page < (block + 1) * lists; ++page) {
        const auto references = pool_->references(page);
        const auto mine = held.find(page) == held.end() ? 0U : held.at(page);
        expect(references >= mine, "a page has fewer references than holders");
        others += references - mine;
        here += references > 0 ? 1U : 0U;
      }
      used += here;
      free += here == 0 ? 1U : 0U;
    }
    expect(others == exact_.size() * lists + states_.pages(), "references do not add up");
    expect(pool_->used_pages() == used, "pages in use do not add up");
    expect(pool_->free_blocks() == free, "free blocks do not add up");
    expect(pool_->loose_pages() == std::uint64_t{blocks - free} * lists - used, "loose pages do not add up");
    expect(exact_.size() <= budget && states_.size() == known_.size(), "an index has more than it may");
  }

  /// Ends everything: nothing may be left behind.
  void end() {
    subjects_.clear();
    known_.clear();
    states_.evict(~std::uint64_t{0});
    exact_.evict(blocks);
    expect(exact_.size() == 0 && states_.size() == 0, "an index is not empty");
    expect(pool_->free_blocks() == blocks && pool_->used_pages() == 0, "pages are left behind");
  }

 private:
  static constexpr std::uint32_t budget = 20;

  /// What the model knows of a sequence.
  struct facts {
    std::string tenant;
    std::vector<token_id> tokens;
    std::vector<std::uint32_t> values; ///< of each position, whether it is kept or not
    std::array<std::vector<position_t>, lists> kept;
    bool ragged = false;
  };
  struct subject {
    sequence real;
    facts is;
  };

  static void expect(bool holds, const char* what) {
    if (!holds)
      throw std::logic_error(what);
  }
  static std::uint32_t mix(std::uint32_t a, std::uint32_t b) {
    a = (a ^ (b + 0x9E3779B9U + (a << 6U))) * 0x85EBCA6BU;
    return a ^ (a >> 13U);
  }
  static kv_element element(std::uint32_t value, std::uint32_t list, std::size_t part, std::size_t d) {
    return static_cast<kv_element>(mix(value, list * 16 + static_cast<std::uint32_t>(part * 4 + d)));
  }
  /// The next value is a function of the tokens so far, unless something was dropped: then of that too.
  static std::uint32_t next_value(const facts& is, token_id token) {
    std::uint32_t seed = is.values.empty() ? mix(7, is.tenant[0] == 't' ? 1 : 2) : is.values.back();
    if (is.ragged)
      for (const auto& list : is.kept)
        seed = mix(seed, static_cast<std::uint32_t>(list.size()));
    return mix(seed, token);
  }

  void verify(const sequence& real, const facts& is) const {
    expect(real.length() == is.tokens.size(), "the length is wrong");
    expect(real.ragged() == is.ragged, "ragged or not");
    for (std::uint32_t list = 0; list < lists; ++list) {
      const auto& kept = is.kept[list];
      expect(real.kept(list / 2, list % 2) == kept.size(), "the number of kept positions is wrong");
      if (is.ragged)
        expect(std::ranges::equal(real.positions(list / 2, list % 2), kept), "the kept positions are wrong");
      const auto pages = real.pages(list / 2, list % 2);
      for (std::uint32_t slot = 0; slot < kept.size(); ++slot) {
        expect(real.slot_from(list / 2, list % 2, kept[slot]) == slot, "a position is not where it is kept");
        const auto* page = std::as_const(*pool_).data(pages[slot / page_tokens]);
        for (std::size_t part = 0; part < 2; ++part)
          for (std::size_t d = 0; d < shape.head_dim; ++d)
            expect(page[place(part, slot % page_tokens, d)] == element(is.values[kept[slot]], list, part, d),
              "a page holds something else");
      }
    }
  }

  static std::size_t place(std::size_t part, std::size_t slot, std::size_t d) {
    return part == 0 ? d * page_tokens + slot : (page_tokens + slot) * shape.head_dim + d;
  }

  /// A text from a few families that share beginnings.
  static std::vector<token_id> text(std::uint32_t family, std::size_t length) {
    std::vector<token_id> tokens(length);
    for (std::size_t i = 0; i < length; ++i)
      tokens[i] = static_cast<token_id>(i < 24 ? i : i + 1000 * (family % 3));
    return tokens;
  }

  void open(std::uint32_t a, std::uint32_t b) {
    facts is;
    is.tenant = a % 4 == 0 ? "u" : "t";
    auto tokens = text(a / 4, b % 130);
    sequence real(*pool_);
    const auto found = exact_.find(is.tenant, tokens);
    real.adopt(found);
    tokens.resize(found.size() * page_tokens);
    learn(is, tokens);
    subjects_.push_back({std::move(real), std::move(is)});
  }

  static void learn(facts& is, const std::vector<token_id>& tokens) {
    for (const auto token : tokens) {
      is.values.push_back(next_value(is, token));
      for (auto& list : is.kept)
        list.push_back(static_cast<position_t>(is.tokens.size()));
      is.tokens.push_back(token);
    }
  }

  void change(const operation& what, std::size_t index) {
    auto& which = subjects_[index];
    switch (what.kind % 16) {
    case 1:
    case 2:
    case 3:
    case 4:
      append(which, 1 + what.b % 40, what.b / 40 % 7 == 0);
      break;
    case 5:
      subjects_.push_back({which.real.fork(), which.is});
      break;
    case 6:
    case 7:
      keep(which, what.b % lists, what.b / lists);
      break;
    case 8:
      cut(which, what.b);
      break;
    case 9:
    case 10:
      store(which);
      break;
    case 11:
      exact_.evict(what.b % 4);
      break;
    case 12:
      find_state(which.is.tenant, text(what.b, 130));
      break;
    case 13:
      evict_states(what.b % 6);
      break;
    case 14:
      pin(which, what.b);
      break;
    default:
      subjects_.erase(subjects_.begin() + static_cast<std::ptrdiff_t>(index));
    }
  }

  void append(subject& to, std::uint32_t count, bool strays) {
    auto needed = to.real.blocks_needed(count);
    if (needed > pool_->free_blocks())
      exact_.evict(needed);
    needed = to.real.blocks_needed(count);
    const auto free = pool_->free_blocks();
    const auto used = pool_->used_pages();
    const auto made = to.real.reserve(count);
    expect(made.has_value() == (needed <= free), "a need was misjudged");
    if (!made) {
      expect(pool_->used_pages() == used, "a failed reservation took pages");
      return;
    }
    auto tokens = text(to.is.tokens.empty() ? 0 : to.is.tokens.back() / 1000, to.is.tokens.size() + count);
    tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(to.is.tokens.size()));
    if (strays)
      tokens.front() = 5000 + count % 3;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto value = next_value(to.is, tokens[i]);
      for (std::uint32_t list = 0; list < lists; ++list) {
        const auto slot = static_cast<std::uint32_t>(to.is.kept[list].size());
        auto* page = pool_->data(to.real.pages(list / 2, list % 2)[slot / page_tokens]);
        for (std::size_t part = 0; part < 2; ++part)
          for (std::size_t d = 0; d < shape.head_dim; ++d)
            page[place(part, slot % page_tokens, d)] = element(value, list, part, d);
      }
      learn(to.is, {tokens[i]});
    }
    to.real.advance(count);
  }

  std::set<page_id> pages_in_use() const {
    std::set<page_id> used;
    for (page_id page = 0; page < blocks * lists; ++page)
      if (pool_->references(page) > 0)
        used.insert(page);
    return used;
  }

  void keep(subject& of, std::uint32_t list, std::uint32_t pattern) {
    std::vector<position_t> wanted;
    for (const auto p : of.is.kept[list])
      if (mix(p, pattern) % 8 < pattern % 9)
        wanted.push_back(p);
    // Reserved pages aside: these go back beside those that are counted.
    of.real.truncate(of.real.length());
    const auto before = pages_in_use();
    const auto freed = of.real.keep(list / 2, list % 2, wanted);
    if (!freed) {
      expect(freed.error().code == errc::resource_exhausted, "positions that are kept were refused");
      const auto available = pool_->free_blocks() * lists + pool_->loose_pages();
      expect(available * page_tokens < wanted.size(), "refused although pages are free");
      expect(pages_in_use() == before, "a refused keep took pages");
      return;
    }
    const auto after = pages_in_use();
    std::vector<page_id> gone;
    std::ranges::set_difference(before, after, std::back_inserter(gone));
    expect(*freed == gone.size(), "another number of pages came free than was told");
    if (wanted.size() == of.is.kept[list].size())
      return;
    of.is.kept[list] = wanted;
    of.is.ragged = true;
  }

  static void cut(subject& of, std::uint32_t b) {
    const auto length = static_cast<position_t>(b % (of.is.tokens.size() + 1));
    of.real.truncate(length);
    of.is.tokens.resize(length);
    of.is.values.resize(length);
    for (auto& list : of.is.kept)
      std::erase_if(list, [&](position_t p) { return p >= length; });
  }

  void store(const subject& of) {
    if (!of.is.ragged) {
      const auto full = of.real.blocks().first(of.is.tokens.size() / page_tokens);
      pool_->retain_blocks(full);
      exact_.insert(of.is.tenant, of.is.tokens, full);
      return;
    }
    const bool whole = !of.is.tokens.empty() && of.is.tokens.size() % page_tokens == 0;
    expect(states_.insert(of.is.tenant, of.is.tokens, of.real).has_value() == whole, "a state was not kept");
    if (!whole)
      return;
    std::erase_if(
      known_, [&](const facts& is) { return is.tenant == of.is.tenant && is.tokens == of.is.tokens; });
    known_.push_front(of.is);
    if (known_.size() > most_states)
      known_.pop_back();
  }

  void find_state(const std::string& tenant, const std::vector<token_id>& tokens) {
    auto best = known_.end();
    for (auto it = known_.begin(); it != known_.end(); ++it)
      if (it->tenant == tenant && it->tokens.size() <= tokens.size()
          && std::equal(it->tokens.begin(), it->tokens.end(), tokens.begin())
          && (best == known_.end() || it->tokens.size() > best->tokens.size()))
        best = it;
    auto found = states_.find(tenant, tokens);
    expect(found.has_value() == (best != known_.end()), "a state was not found, or one that is not there");
    if (!found)
      return;
    known_.splice(known_.begin(), known_, best);
    subjects_.push_back({std::move(*found), known_.front()});
  }

  void evict_states(std::uint64_t pages) {
    const auto before = pool_->used_pages();
    const auto freed = states_.evict(pages);
    expect(pool_->used_pages() == before - freed, "another number of pages came free than was told");
    expect(freed >= pages || states_.size() == 0, "states stayed although pages were wanted");
    while (known_.size() > states_.size())
      known_.pop_back();
  }

  void pin(const subject& of, std::uint32_t b) {
    const prefix_cache::clock::time_point until{std::chrono::seconds(b)};
    static_cast<void>(exact_.pin(of.is.tenant, of.is.tokens, until));
    exact_.expire(prefix_cache::clock::time_point{std::chrono::seconds(b / 2)});
  }

  static block_hasher hasher(const std::string& profile) {
    cache_scope scope;
    scope.shape = shape;
    scope.profile = profile;
    return {identity_key::derive({}), scope};
  }

  std::shared_ptr<page_pool> pool_ = page_pool::create(shape, blocks).value();
  prefix_cache exact_{pool_, hasher(""), {.budget = budget, .pin_quota = 6, .most_pins = 3}};
  approximate_cache states_{pool_, hasher("half"), {.pages = 10000, .entries = most_states}};
  std::list<facts> known_; ///< what states_ has, the last used first
  std::deque<subject> subjects_;
};

} // namespace godwit::test
