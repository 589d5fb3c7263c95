// Random lives of a session: calls, tokens, slow and failing disks, crashes, in any order. Whatever happens,
// what clients were told is what the journal says, no token is lost or told twice, and every turn ends once.

#include "actors/session/event_history.hpp"
#include "tests/unit/actors/session/core_harness.hpp"

#include <random>
#include <set>

using namespace godwit;

namespace {

class life {
 public:
  explicit life(std::uint32_t seed) : dice_(seed), world_(options(seed)) {}

  void run() {
    for (int step = 0; step < 120; ++step)
      one_step();
    // In the end everybody is patient.
    for (int i = 0; i < 200 && (world_.core->machine().running() != 0 || !world_.core->quiet()); ++i) {
      world_.settle();
      world_.pass(6'000);
    }
    world_.settle();
  }

  void check() {
    const auto events = world_.replay();
    REQUIRE(world_.core->machine().running() == 0);
    // Told is what is written, all of it, in order.
    REQUIRE((world_.seen == events));
    check_turns(events);
    check_tokens();
    check_cuts(events);
  }

 private:
  static core_harness::options options(std::uint32_t seed) {
    core_harness::options with;
    with.seed = seed;
    with.max_tokens = 3 + seed % 17;
    with.busy = static_cast<schema::OnBusy>(seed % 3);
    with.limits.token_credit = 1 + seed % 9;
    with.limits.tokens_per_record = 1 + seed % 5;
    with.limits.read_page = 1 + seed % 7;
    with.limits.attempts = 1'000;
    if (seed % 4 == 0)
      with.stops = {" the", " STOP now"};
    return with;
  }

  std::uint32_t roll(std::uint32_t sides) {
    return std::uniform_int_distribution<std::uint32_t>(0, sides - 1)(dice_);
  }

  void one_step() {
    switch (roll(19)) {
    case 0:
    case 1:
      world_.post("message " + std::to_string(roll(5)), roll(2) == 0 ? "k" + std::to_string(roll(5)) : "");
      break;
    case 2:
      if (roll(2) == 0)
        world_.cancel(roll(4));
      break;
    case 3:
      world_.log->hold();
      break;
    case 4:
      world_.log->release(1 + roll(2));
      break;
    case 5:
    case 6:
      world_.log->resume();
      break;
    case 7:
      world_.restart();
      break;
    case 8:
      world_.log->fail_next(memory_journal::call::append,
        {roll(2) == 0 ? errc::io : errc::deadline, "no", "", ""}, 1,
        roll(2) == 0 ? memory_journal::outcome::stored : memory_journal::outcome::refused);
      break;
    case 9:
      world_.pass(roll(3'000));
      break;
    case 10:
      if (roll(3) == 0)
        world_.fail_generation(roll(2) == 0 ? errc::peer_lost : errc::overloaded);
      break;
    case 11:
    case 12:
      world_.make_prompt();
      break;
    case 13:
      world_.slow = !world_.slow;
      break;
    case 14:
    case 15:
      world_.answer_question();
      break;
    default:
      world_.work(1 + roll(4));
      break;
    }
  }

  void check_turns(const std::vector<session_event>& events) {
    std::map<turn_number, int> terminal;
    std::map<turn_number, int> accepted;
    event_place last;
    for (const auto& event : events) {
      REQUIRE(last < event.place);
      last = event.place;
      accepted[event.turn] += event.type == "message.accepted";
      terminal[event.turn] += event.terminal;
      // Nothing of a turn comes behind its end.
      REQUIRE((event.terminal || terminal[event.turn] == 0));
    }
    for (const auto& turn : world_.core->machine().turns()) {
      REQUIRE(accepted[turn.turn] == 1);
      REQUIRE(terminal[turn.turn] == 1);
    }
  }

  /// The tokens of each turn are those that the model gives for its prompt, as far as they were released; and
  /// each prompt begins with tokens that were there before, or is the encoded conversation.
  void check_tokens() {
    session_machine machine(world_.id);
    std::map<turn_number, std::vector<token_id>> sequences;
    std::map<turn_number, std::size_t> prompts;
    for (const auto& record : world_.disk->sessions.at(world_.id).records) {
      REQUIRE(machine.apply(record));
      if (!machine.conversation().empty()) {
        sequences[machine.conversation().back()] = machine.tokens();
        prompts[machine.conversation().back()] = machine.prompt_length();
      }
    }
    for (const auto& [turn, tokens] : sequences) {
      const std::vector<token_id> prompt(
        tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(prompts[turn]));
      const auto golden = core_harness::golden(
        machine.settings().getSampling().getSeed(), prompt, machine.settings().getMaxTokens());
      REQUIRE(tokens.size() <= golden.size());
      REQUIRE(std::equal(tokens.begin(), tokens.end(), golden.begin()));
      if (machine.find(turn)->now == session_turn::state::completed
          && machine.settings().getStop().size() == 0)
        REQUIRE(tokens == golden);
    }
  }

  /// A journal that ends after any record makes the first of the same events, also when they are read on from
  /// any place.
  void check_cuts(const std::vector<session_event>& events) {
    event_history history(world_.id, 3);
    event_maker order;
    for (const auto& record : world_.disk->sessions.at(world_.id).records) {
      REQUIRE(order.apply(record));
      history.passed(order);
    }
    for (std::size_t i = 0; i < events.size(); i += 1 + events.size() / 12) {
      const auto& pages = history.pages();
      auto place = pages.seek(*world_.log, history.before(events[i].place), events[i].place);
      REQUIRE(place);
      auto rest = std::move(place->events);
      while (place->order.sequence() < order.sequence()) {
        const auto more = pages.next(*world_.log, place->order, order.sequence());
        REQUIRE(more);
        rest.insert(rest.end(), more->begin(), more->end());
      }
      REQUIRE(
        rest
        == std::vector<session_event>(events.begin() + static_cast<std::ptrdiff_t>(i) + 1, events.end()));
    }
  }

  std::mt19937 dice_;
  core_harness world_;
};

} // namespace

TEST_CASE("whatever happens to a session, its journal is what was told") {
  const auto first = GENERATE(range(0, 20));
  for (int i = 0; i < 6; ++i) {
    const auto seed = static_cast<std::uint32_t>(6 * first + i);
    INFO("seed " << seed);
    life one(seed);
    one.run();
    one.check();
  }
}
