#pragma once

#include "actors/device/rank.hpp"
#include "actors/device/step.hpp"
#include "actors/device/step_letters.hpp"
#include "messages/ids.hpp"
#include "messages/letter.hpp"
#include "messages/result.hpp"
#include "messages/schemas/generation.capnp.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace godwit {

struct prefill_limits {
  std::size_t queued = 256;   ///< requests that wait for their first step
  std::size_t active = 8;     ///< prompts that are computed at the same time
  std::size_t sequences = 64; ///< active prompts and running streams together
  std::uint32_t offer = 512;  ///< tokens of one prompt that one step may take
};

/// A prompt whose cached prefix shall be looked up.
struct prefix_question {
  request_id request = 0;
  const std::string* tenant = nullptr;
  const std::vector<token_id>* tokens = nullptr;
};

/// What the cache says of a prompt.
struct prefix_answer {
  std::vector<block_id> blocks = {}; ///< from the first on; in a second answer those behind the first one's
  std::uint32_t first = 0;           ///< blocks before these
  std::uint32_t loading = 0;         ///< blocks that are still being brought; above 0 another answer follows
  std::chrono::milliseconds patience{0}; ///< with them: computing them would have taken so long
  std::uint32_t waiting = 0;             ///< blocks that a lower tier has, if only there were room
  std::uint32_t host = 0;                ///< of `blocks`, brought from host memory
  std::uint32_t disk = 0;                ///< and from the cold tier
  std::uint32_t gap = 0; ///< in a first answer: blocks to compute while the last ones are brought,
  std::uint32_t tail =
    0; ///< so many of `loading`, which stand behind those and come in an answer of their own
  std::uint32_t elsewhere = 0; ///< blocks that another node has behind these; above 0 another answer follows
  std::uint32_t fresh =
    0; ///< of all blocks until here, the last ones, that others computed for this very request
};

/// What dropping a request leaves to be done.
struct dropped_prompt {
  bool known = false;
  bool close = false;           ///< its sequence may be on the device, and was not closed before
  bool forgo = false;           ///< the cache brings blocks for it
  std::vector<block_id> unused; ///< found blocks that were not handed over
};

/// What the next submission says.
struct prefill_wishes {
  std::vector<opening_order> openings;
  std::vector<row_offer> rows;
  std::vector<hole_filling> fillings = {};
};

/// The requests of a worker from acceptance to end: first in a queue by rank, then looked up in the cache,
/// then computed in chunks on the device, then handed to decode; and back to the queue if their pages are
/// lost. A prompt that shares its beginning with one that is being computed waits for it, so as to find it in
/// the cache. What the cache brings for a prompt may have a hole before it, which is computed meanwhile; who
/// has come to what is still on its way waits for that.
class prefill_queue {
 public:
  using clock = std::chrono::steady_clock;

  explicit prefill_queue(prefill_limits limits) : limits_(limits) {}

  /// Takes a checked request. @returns `overloaded` when too many wait, `conflict` for a known id
  /// @param held it does not begin before proceed(): its prompt is being computed elsewhere
  result<void> accept(letter<schema::GenerateRequest> ask, bool held = false);
  /// A request that was held may begin.
  void proceed(request_id request);

  /// The prompts that may begin now. Each must be looked up and then given to found().
  std::vector<prefix_question> begin(clock::time_point now);
  /// Blocks for a prompt. @returns false if it does not wait for them any more: they are the caller's to
  /// release
  bool found(request_id request, std::vector<block_id> blocks) {
    prefix_answer what;
    what.blocks = std::move(blocks);
    return answer(request, what, {});
  }
  /// The same with all that the cache says. Blocks that do not follow those at hand belong to an earlier
  /// question.
  bool answer(request_id request, const prefix_answer& what, clock::time_point now);
  /// Goes on without the answers that were asked for before `since`, and without the blocks that have been
  /// under way for too long. @returns requests for which the cache need not bring them any more
  std::vector<request_id> expire(clock::time_point since, clock::time_point now);
  void expire(clock::time_point since) { expire(since, since); }
  /// Some prompt waits for the cache, or will.
  bool looking_up() const;

  /// What to submit: openings and fillings are in it once, the latter only with a row of their prompt; rows
  /// of every active prompt each time.
  prefill_wishes wishes();
  /// Results of a step. @returns prompts that got their first token
  std::vector<request_id> take(const step_result& result);
  /// Sequences to close, to be looked up again: lower tiers have blocks of them, and the device has room now,
  /// or will have when pages come free.
  std::vector<sequence_key> take_closing() { return std::exchange(closing_, {}); }
  /// Blocks that came for prompts which do without them, and prompts for which no more need be brought.
  std::vector<block_id> take_unused() { return std::exchange(unused_, {}); }
  std::vector<request_id> take_forgone() { return std::exchange(forgone_, {}); }
  /// Pages came free.
  void unblock();

  /// The client does not want it any more: no more work for it. Stays known until ended().
  dropped_prompt drop(request_id request);
  /// Decode lost the pages of a request.
  /// @param tokens all so far
  void recompute(request_id request, std::vector<token_id> tokens);
  /// Decode is done with a request.
  dropped_prompt ended(request_id request);

  bool known(request_id request) const { return prompts_.contains(request); }
  std::vector<request_id> all() const;
  std::size_t size() const { return prompts_.size(); }
  std::size_t queued() const { return count(stage::queued) + count(stage::held); }
  std::size_t active() const { return count(stage::looking) + count(stage::ready) + count(stage::active); }
  /// Prompt tokens that were taken from the cache, of prompts that got their first token.
  found_tokens cached_tokens() const { return cached_tokens_; }

 private:
  enum class stage : std::uint8_t {
    held, ///< others compute its prompt
    queued,
    looking, ///< the cache was asked
    ready,   ///< to be opened with the next submission
    active,  ///< on the device
    handed,  ///< decode has it, or it was dropped
  };
  /// What is brought for a prompt while it computes what stands before that.
  struct awaited {
    std::uint32_t at = 0;         ///< tokens before it; 0: there is nothing
    bool coming = false;          ///< it has not come yet
    std::vector<block_id> blocks; ///< what came; none: there is nothing to wait for any more
    clock::time_point until{};    ///< when it is not waited for any longer
  };
  struct prompt {
    letter<schema::GenerateRequest> ask;
    rank order;
    std::string tenant;
    std::vector<token_id> tokens;
    std::uint32_t prompt_length = 0;
    stage at = stage::queued;
    std::vector<block_id> cached;
    bool loading = false;      ///< the cache brings more
    clock::time_point until{}; ///< when that is not waited for any longer
    std::uint32_t host = 0;    ///< tokens of `cached` by tier
    std::uint32_t disk = 0;
    std::uint32_t waiting = 0; ///< blocks that the cache has no room to bring
    bool begun = false;        ///< some of it was computed since it was opened
    bool room_made = false;    ///< the device made room for it once: it does not ask again
    std::uint32_t left = 0;    ///< tokens that are not there yet
    awaited tail;
    std::uint32_t cached_at_most = ~std::uint32_t{0}; ///< the rest of what is found it computed before
    bool blocked = false;                             ///< starved: not offered until pages come free
    bool first_token = false;                         ///< it had one before
    bool dropped = false;                             ///< nobody wants it any more
    clock::time_point asked{};
  };
  using prompts = std::map<request_id, prompt>;

  std::size_t count(stage at) const { return counts_[static_cast<std::size_t>(at)]; }
  void move(prompt& which, stage to);
  void ready(prompt& which);
  static bool wants_room(const prompt& which);
  void look_up_again(prompts::value_type& item);
  void count(const found_tokens& found);
  dropped_prompt leave(prompt& which);
  /// Tokens that are there, of an active prompt.
  static std::uint32_t there(const prompt& which) {
    return static_cast<std::uint32_t>(which.tokens.size()) - which.left;
  }
  void give_up(prompts::value_type& item);
  void offer(prompts::value_type& item, prefill_wishes& out) const;
  bool behind_a_blocked_one(const prompt& which) const;
  bool waits_for_twin(const prompt& which) const;
  std::vector<prompts::value_type*> by_rank(stage at);

  prefill_limits limits_;
  prompts prompts_;
  std::array<std::size_t, 6> counts_{}; ///< by stage
  std::uint64_t arrivals_ = 0;
  found_tokens cached_tokens_;
  std::vector<sequence_key> closing_;
  std::vector<block_id> unused_;
  std::vector<request_id> forgone_;
};

} // namespace godwit
