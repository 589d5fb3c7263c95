// Many seeds of a mesh that breaks in every way at once. What must hold: every request ends once, with its
// own answer or an error, by its deadline; no request is served twice; the letters of one conversation and
// lane come without a hole; when the faults are over, everybody finds everybody again.

#include "tests/unit/services/link/simulated_network.hpp"

#include "tests/support/asked_number.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <set>
#include <tuple>

using namespace godwit;
using namespace godwit::link;
using namespace godwit::link::simulated;

namespace {

struct asked {
  std::string from;
  std::uint64_t run = 0;
  moment deadline{0};
  int ends = 0;
  bool orphan = false; ///< its node was killed or stopped meanwhile
};

class churn {
 public:
  explicit churn(std::uint64_t seed) : net_(seed) {
    for (const auto& name : names_)
      boot(name);
  }

  void run() {
    for (int step = 0; step < 60; ++step) {
      for (int i = 0; i < 4; ++i)
        ask();
      for (int i = 0; i < 12; ++i)
        tell();
      fault();
      net_.pass(moment(static_cast<moment::rep>(net_.random() % 700'000)));
      for (const auto& each : asked_)
        if (each.second.ends == 0 && !each.second.orphan
            && net_.now > each.second.deadline + 20 * millisecond)
          throw std::runtime_error("a request hangs longer than its deadline");
    }
    heal();
  }

 private:
  void boot(const std::string& name) {
    core_options most;
    most.peers.letters.parcels = 12; // so that it fills up while nothing leaves
    most.peers.bulk.parcels = 6;
    auto one = net_.start(name, most);
    one->hear = [this, name](const incoming& mail) {
      auto& last = heard_[{name, std::string(mail.from), mail.which, mail.header.session}];
      const auto value = number_of(mail.words);
      if (last != 0 && value != last + 1)
        throw std::runtime_error("a letter is missing in its row");
      last = value;
      ++told_and_heard_;
    };
    one->serve = [this, node = one.get()](std::uint64_t value, const reply_token& token) {
      if (!served_.insert(value).second)
        throw std::runtime_error("a request was served twice");
      const auto choice = net_.random() % 10;
      if (choice == 0)
        return; // never
      const auto answer = [this, node, value, token] {
        const auto current = net_.alive.find(node->subject.members().self().node.value);
        if (current != net_.alive.end() && current->second.get() == node && !node->paused)
          node->subject.reply(
            token, lane::letters, numbered(frame_kind::reply, token.correlation, value), net_.now);
      };
      choice < 6 ? answer()
                 : net_.later(net_.now + moment(static_cast<moment::rep>(net_.random() % 800'000)), answer);
    };
    for (const auto& other : names_)
      if (other != name)
        one->subject.members().add(network::record(other), net_.now);
  }

  void ask() {
    const auto& from = names_[net_.random() % names_.size()];
    const auto& to = names_[net_.random() % names_.size()];
    const auto found = net_.alive.find(from);
    if (from == to || found == net_.alive.end() || !found->second || found->second->paused)
      return;
    const auto value = ++last_;
    auto& one = asked_[value];
    one = {from, found->second->run,
      net_.now + moment(static_cast<moment::rep>(100'000 + net_.random() % 4'000'000))};
    found->second->subject.request(
      to, lane::letters, numbered(frame_kind::request, value, value), value, one.deadline,
      [this, value](const result<incoming>& answer) {
        auto& ended = asked_[value];
        if (++ended.ends > 1)
          throw std::runtime_error("a request ended twice");
        if (answer && number_of(answer->words) != value)
          throw std::runtime_error("a request got another one's answer");
        answered_ += answer ? 1 : 0;
      },
      net_.now);
  }

  void tell() {
    const auto& from = names_[net_.random() % names_.size()];
    const auto& to = names_[net_.random() % names_.size()];
    const auto found = net_.alive.find(from);
    if (from == to || found == net_.alive.end() || !found->second || found->second->paused)
      return;
    const auto which = net_.random() % 4 == 0 ? lane::bulk : lane::letters;
    const auto within = moment(static_cast<moment::rep>(500'000 + net_.random() % 4'000'000));
    found->second->subject.send(
      to, which, numbered(frame_kind::letter, 0, ++told_[{from, to, which}]), net_.now + within, net_.now);
  }

  void fault() {
    const auto& name = names_[net_.random() % names_.size()];
    const auto& other = names_[net_.random() % names_.size()];
    const auto here = net_.alive.find(name);
    const bool alive = here != net_.alive.end() && here->second != nullptr;
    switch (net_.random() % 16) {
    case 0:
      if (alive) {
        orphan(name);
        graveyard_.push_back(here->second);
        net_.kill(name);
      }
      break;
    case 1:
    case 2:
      if (!alive)
        boot(name);
      break;
    case 3:
      if (alive) {
        here->second->paused = !here->second->paused;
        orphan(name);
      }
      break;
    case 4:
      if (alive)
        here->second->paused = false;
      break;
    case 5:
    case 6:
      net_.cut[{name, other}] = true;
      break;
    case 7:
    case 8:
      net_.cut.clear();
      break;
    case 9:
      net_.most_delay = moment(static_cast<moment::rep>(1'000 + net_.random() % 300'000));
      break;
    case 10:
      net_.jam = net_.random() % 3 == 0;
      break;
    case 11:
      net_.jammed = {net_.random() % 2 == 0 ? lane::letters : lane::bulk};
      break;
    case 12:
      net_.jammed.clear();
      break;
    case 13:
      net_.break_lane(name, net_.random() % 3 == 0 ? lane::letters : lane::bulk);
      break;
    default:
      break;
    }
  }

  /// Requests of a node that does not run cannot keep their deadlines.
  void orphan(const std::string& name) {
    for (auto& [value, one] : asked_)
      one.orphan = one.orphan || (one.from == name && one.ends == 0);
  }

  void heal() {
    net_.cut.clear();
    net_.jam = false;
    net_.jammed.clear();
    net_.most_delay = 5 * millisecond;
    for (const auto& name : names_) {
      const auto here = net_.alive.find(name);
      if (here == net_.alive.end() || !here->second)
        boot(name);
      else
        here->second->paused = false;
    }
    net_.pass(30 * second);
    for (const auto& name : names_)
      for (const auto& other : names_)
        if (name != other && !net_.alive[name]->up(other))
          throw std::runtime_error(name + " has not found " + other + " again");
    for (const auto& [value, one] : asked_)
      if (one.ends == 0 && net_.alive[one.from]->run == one.run)
        throw std::runtime_error("a request never ended");
    for (const auto& name : names_) {
      const auto& counters = net_.alive[name]->counters;
      overloaded_ += counters.overloaded;
      redials_ += counters.bulk_redials;
      if (counters.pending_requests != 0 || counters.queued_parcels != 0 || counters.queued_bulk != 0)
        throw std::runtime_error("something is left over");
    }
  }

 public:
  int answered_ = 0;
  std::uint64_t told_and_heard_ = 0;
  std::uint64_t overloaded_ = 0; ///< as those that are alive at the end count them
  std::uint64_t redials_ = 0;

 private:
  const std::vector<std::string> names_{"alpha", "beta", "gamma", "delta"};
  network net_;
  std::map<std::uint64_t, asked> asked_;
  std::set<std::uint64_t> served_;
  std::map<std::tuple<std::string, std::string, lane>, std::uint64_t> told_;
  /// The last letter to a node, from one, in a lane and a conversation.
  std::map<std::tuple<std::string, std::string, lane, std::uint64_t>, std::uint64_t> heard_;
  std::vector<std::shared_ptr<node>> graveyard_; ///< events that are on their way may look at them
  std::uint64_t last_ = 0;
};

} // namespace

TEST_CASE("whatever breaks, every request ends once and by its deadline, and the mesh heals") {
  const auto begin = asked_number("GODWIT_LINK_FIRST_SEED", 1);
  const auto seeds = asked_number("GODWIT_LINK_SEEDS", 60);
  int answered = 0;
  std::uint64_t heard = 0;
  std::uint64_t overloaded = 0;
  std::uint64_t redials = 0;
  for (auto seed = begin; seed < begin + seeds; ++seed) {
    INFO("GODWIT_LINK_FIRST_SEED=" << seed << " GODWIT_LINK_SEEDS=1 runs it again");
    churn mesh(seed);
    REQUIRE_NOTHROW(mesh.run());
    answered += mesh.answered_;
    heard += mesh.told_and_heard_;
    overloaded += mesh.overloaded_;
    redials += mesh.redials_;
  }
  // Otherwise nothing was tested.
  CHECK(answered > 10 * static_cast<int>(seeds));
  CHECK(heard > 100 * seeds);
  CHECK(overloaded > 0);
  CHECK(redials > 0);
}
