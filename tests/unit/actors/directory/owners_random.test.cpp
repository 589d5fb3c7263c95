// Random lives of three nodes over one journal: they are killed, stopped and started, lose sight of each
// other, workers fall, the journal's answers are late or lost, while clients post with keys and read on
// behind what they have seen. Whatever happens, each message is in its session once, each turn ends once with
// the tokens that the model gives, and each reader sees all events once and in order.
//
// GODWIT_OWNER_SEEDS says how many lives; GODWIT_OWNER_FIRST_SEED the first of them.

#include "tests/support/asked_number.hpp"
#include "tests/unit/actors/directory/mesh_world.hpp"
#include "tests/unit/actors/directory/slow_journal.hpp"
#include "tests/unit/actors/session/held_clerks.hpp"

#include <cstdlib>

using namespace godwit;

namespace {

constexpr int turns = 3;
/// Milliseconds until a node that is gone is missed.
constexpr std::int64_t detection = 1'750;
/// How long a client waits for an answer.
constexpr auto patience = std::chrono::seconds(6);

/// One session's client: posts one message after the other until each is acknowledged, and reads all events.
struct client {
  std::string id;
  turn_number acknowledged = 0;
  bool posting = false;

  std::vector<std::string> seen; ///< ids of events
  session_actor session;         ///< that is read from
  int reading = 0;               ///< which of the readers counts
  bool looking = false;          ///< for the session
};

directory_limits quick() {
  directory_limits limits;
  limits.tick = std::chrono::milliseconds(500);
  limits.settle = std::chrono::milliseconds(2'500);
  limits.yield = std::chrono::milliseconds(3'000);
  limits.idle_after = std::chrono::milliseconds(4'000);
  return limits;
}

class mesh_life : public mesh_world {
 public:
  explicit mesh_life(std::uint32_t seed) : mesh_world(0, quick()), dice_(seed) {
    config.records = records_;
    config.clerks = clerks_;
    clerks_->hold();
    config.limits.attempts = 1'000;
    config.limits.token_credit = 1 + seed % 7;
    config.limits.tokens_per_record = 1 + seed % 3;
    config.limits.read_page = 1 + seed % 5;
    for (const auto* name : {"a", "b", "c"})
      connect(add(name));
    for (std::size_t i = 0; i < 3; ++i) {
      clients_.emplace_back();
      clients_.back().id = create(i, seed + i, 4 + seed % 9);
    }
  }
  ~mesh_life() override {
    records_->close();
    clerks_->resume();
    end();
  }

  void live() {
    for (int step = 0; step < 400; ++step)
      one_step();
    // In the end all is well, and everybody has time.
    for (std::size_t i = 0; i < nodes.size(); ++i)
      come_back(i);
    for (std::size_t i = 0; i < nodes.size(); ++i)
      connect(i);
    for (int i = 0; i < 400 && !done(); ++i) {
      for (auto& one : clients_) {
        post_next(one);
        read_on(one);
      }
      finish_work();
      pass(500);
    }
  }

  /// All that the three sessions had.
  epoch_t owners() const {
    epoch_t sum = 0;
    for (const auto& one : clients_)
      sum += epoch(one.id);
    return sum;
  }

  void check_all() {
    for (auto& one : clients_) {
      INFO("session " << one.id << " of " << owner(one.id) << " in epoch " << epoch(one.id)
                      << ", read from actor " << (one.session ? one.session.id() : 0));
      REQUIRE(one.acknowledged == turns);
      REQUIRE(!stored(one.id).head.running);
      REQUIRE(check(one.id) == turns);
      REQUIRE(one.seen == events(one.id));
    }
    // Here no link fails what was asked of a node that is gone: it takes its whole time.
    pass(limits.request_timeout.count() + 1);
    for (std::size_t i = 0; i < nodes.size(); ++i)
      REQUIRE(gauge(i, "waiting_calls") == 0);
  }

 private:
  std::uint32_t roll(std::uint32_t sides) {
    return std::uniform_int_distribution<std::uint32_t>(0, sides - 1)(dice_);
  }

  void one_step() {
    switch (roll(27)) {
    case 0:
      return fall(roll(3));
    case 1:
    case 2:
      return come_back(roll(3));
    case 3:
      return cut_or_heal();
    case 4:
      return lose_generation();
    case 5:
      return journal_fault();
    case 6:
    case 7:
    case 8:
      return elapse(roll(700));
    case 9:
    case 10:
      return post_next(clients_[roll(3)]);
    case 11:
    case 12:
      return read_on(clients_[roll(3)]);
    case 13:
    case 14:
    case 15:
      if (records_->waiting() > 0)
        records_->commit(roll(static_cast<std::uint32_t>(records_->waiting())));
      return;
    case 16:
    case 17:
    case 18:
      return generate();
    case 19:
    case 20:
    case 21:
      if (clerks_->waiting() > 0)
        clerks_->answer(roll(static_cast<std::uint32_t>(clerks_->waiting())));
      return;
    default:
      for (auto left = roll(20); left > 0 && run_one(&dice_); --left) {
      }
    }
  }

  // Nodes.

  bool running(std::size_t i) const { return !nodes[i].stopped; }

  /// Stopped or killed: nobody can tell which before it is back.
  void fall(std::size_t i) {
    if (!running(i))
      return;
    stop(i);
    missed_[i] = time->steady + detection;
  }
  void notice() {
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (missed_[i] != 0 && time->steady >= missed_[i]) {
        missed_[i] = 0;
        for (std::size_t k = 0; k < nodes.size(); ++k)
          if (k != i)
            nodes[k].peers->down(nodes[i].name);
        forget_readers_of(i);
      }
  }
  void come_back(std::size_t i) {
    if (running(i))
      return;
    const bool unnoticed = missed_[i] != 0;
    missed_[i] = 0;
    if (roll(2) == 0) {
      forget_readers_of(i);
      restart(i);
    } else if (unnoticed) {
      nodes[i].stopped = false; // too short to be missed
    } else {
      forget_readers_of(i);
      resume(i);
    }
  }
  /// Two nodes do not see each other any more, or do again. Both reach the journal.
  void cut_or_heal() {
    const std::size_t i = roll(3);
    const std::size_t k = (i + 1 + roll(2)) % 3;
    if (!running(i) || !running(k))
      return;
    if (roll(2) == 0) {
      nodes[i].peers->down(nodes[k].name);
      nodes[k].peers->down(nodes[i].name);
    } else {
      nodes[i].peers->up(nodes[k].name, nodes[k].directory);
      nodes[k].peers->up(nodes[i].name, nodes[i].directory);
    }
  }
  void elapse(std::int64_t milliseconds) {
    time->pass(milliseconds);
    scheduler.advance_time(std::chrono::milliseconds(milliseconds));
    notice();
  }

  // The worker and the journal.

  void generate() {
    if (generations.empty())
      return;
    auto one = generations.begin();
    std::advance(one, roll(static_cast<std::uint32_t>(generations.size())));
    if (const auto step = one->second.go_on(1 + roll(2)))
      caf::anon_send(one->second.sink, toy_batch(one->first, *step));
  }
  void lose_generation() {
    if (generations.empty())
      return;
    auto one = generations.begin();
    std::advance(one, roll(static_cast<std::uint32_t>(generations.size())));
    if (one->second.ended)
      return;
    one->second.ended = true;
    const toy_step last{0, {}, schema::FinishReason::FAILED};
    switch (roll(3)) {
    case 0: // the router says so
      return caf::anon_send(one->second.sink, toy_batch(one->first, last, {errc::peer_lost, "no", "", ""}));
    case 1: // it was lost together with the worker
      generations.erase(one);
      return;
    default: // it hangs
      return;
    }
  }
  void journal_fault() {
    const error lost{errc::deadline, "the journal took too long", "", ""};
    const auto what = roll(2) == 0 ? memory_journal::outcome::stored : memory_journal::outcome::refused;
    log->fail_next(roll(3) == 0 ? memory_journal::call::claim : memory_journal::call::append, lost, 1, what);
  }
  void finish_work() {
    do {
      records_->commit_all();
      clerks_->answer_all();
      run();
    } while (records_->waiting() > 0 || clerks_->waiting() > 0 || work(5) > 0);
  }

  // Clients. They live outside, and reach the nodes that run.

  std::optional<std::size_t> some_node() {
    const std::size_t first = roll(3);
    for (std::size_t i = 0; i < 3; ++i)
      if (const auto next = (first + i) % 3; running(next))
        return next;
    return std::nullopt;
  }
  void post_next(client& one) {
    const auto at = some_node();
    if (one.posting || one.acknowledged == turns || !at)
      return;
    one.posting = true;
    const auto number = one.acknowledged + 1;
    const auto mail = letter<schema::PostMessage>::make([&](schema::PostMessage::Builder to) {
      to.setContent("message " + std::to_string(number));
      to.setIdempotencyKey("k" + std::to_string(number));
    });
    system.spawn([&one, number, mail, to = nodes[*at].directory, id = one.id](caf::event_based_actor* self) {
      const auto failed = [&one](const caf::error&) { one.posting = false; };
      self->request(to, patience, named(id))
        .then(
          [self, &one, number, mail, failed](const session_actor& session) {
            self->request(session, patience, mail)
              .then(
                [&one, number](const letter<schema::MessageAccepted>& accepted) {
                  CHECK(accepted.read().getTurn() == number);
                  one.acknowledged = number;
                  one.posting = false;
                },
                failed);
          },
          failed);
    });
  }
  void read_on(client& one) {
    const auto at = some_node();
    if (one.looking || one.session || !at)
      return;
    one.looking = true;
    const auto reading = ++one.reading;
    const auto sink =
      system.spawn([&one, reading](event_sink_actor::pointer self) -> event_sink_actor::behavior_type {
        return {[&one, reading, self](const letter<schema::EventBatch>& mail) {
          if (reading != one.reading)
            return self->quit();
          for (const auto event : mail.read().getEvents())
            one.seen.emplace_back(event.getId().cStr());
          if (mail.read().getEnded()) {
            one.session = nullptr;
            self->quit();
          }
        }};
      });
    const auto mail = letter<schema::SubscribeRequest>::make([&](schema::SubscribeRequest::Builder to) {
      to.setCredit(1'000);
      if (!one.seen.empty())
        to.setAfter(one.seen.back());
    });
    system.spawn([&one, reading, sink, mail, to = nodes[*at].directory](caf::event_based_actor* self) {
      const auto failed = [&one, reading](const caf::error&) {
        if (reading == one.reading)
          one.session = nullptr;
        one.looking = false;
      };
      self->request(to, patience, named(one.id))
        .then(
          [self, &one, reading, sink, mail, failed](const session_actor& session) {
            if (reading == one.reading)
              one.session = session;
            self->request(session, patience, mail, sink)
              .then([&one](const letter<schema::Subscribed>&) { one.looking = false; }, failed);
          },
          failed);
    });
  }
  /// As a link does when a node is lost: what was held of it is dead.
  void forget_readers_of(std::size_t i) {
    for (auto& one : clients_)
      if (one.session && nodes[i].actors.contains(one.session.id())) {
        one.session = nullptr;
        ++one.reading;
      }
  }

  std::vector<std::string> events(const std::string& id) const {
    std::vector<std::string> out;
    session_machine machine{session_id(id)};
    for (const auto& record : stored(id).records) {
      const auto made = machine.apply(record);
      REQUIRE(made);
      for (const auto& event : *made)
        out.push_back(machine.ids().text(event.place));
    }
    return out;
  }
  bool done() const {
    return std::all_of(clients_.begin(), clients_.end(), [&](const client& one) {
      return one.acknowledged == turns && !one.looking && !stored(one.id).head.running
             && one.seen == events(one.id);
    });
  }

  std::shared_ptr<slow_journal> records_ = std::make_shared<slow_journal>(log);
  std::shared_ptr<held_clerks> clerks_ = std::make_shared<held_clerks>(records_);
  std::mt19937 dice_;
  std::deque<client> clients_;
  std::map<std::size_t, std::int64_t> missed_;
};

} // namespace

TEST_CASE("whatever happens to three nodes, each message is answered once and read once") {
  const auto first = static_cast<std::uint32_t>(asked_number("GODWIT_OWNER_FIRST_SEED", 1));
  const auto lives = static_cast<std::uint32_t>(asked_number("GODWIT_OWNER_SEEDS", on_one_thread(60)));
  epoch_t owners = 0;
  for (auto seed = first; seed < first + lives; ++seed) {
    INFO("GODWIT_OWNER_FIRST_SEED=" << seed << " GODWIT_OWNER_SEEDS=1 runs it again");
    mesh_life one(seed);
    one.live();
    one.check_all();
    owners += one.owners();
  }
  // Otherwise nothing was tested.
  CHECK(owners > 6 * lives);
}
