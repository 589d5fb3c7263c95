// Nodes that come, go, restart, drain and are cut off at random, while letters and news are late: what each
// knows of the others, by its registry (registry_view) and by asking (mesh_view), joined as mesh_shell joins
// them. Time is simulated. GODWIT_MESH_SEEDS says how many lives; GODWIT_MESH_FIRST_SEED the first of them.

#include "messages/text.hpp"
#include "services/mesh/mesh_view.hpp"
#include "services/mesh/registry_view.hpp"
#include "tests/support/asked_number.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace godwit;
using namespace std::chrono_literals;
using moment = std::chrono::milliseconds;

namespace {

constexpr std::size_t count = 5;
constexpr moment storm = 90s;  ///< in which nodes and wires fail
constexpr moment look = 500ms; ///< between two looks at everything
constexpr moment silent = 1750ms;
constexpr moment deaf = 2250ms; ///< until a wire that is cut is noticed
constexpr moment beat_limit = 5s;
constexpr moment reading = 10s;  ///< of the table
constexpr moment patience = 3s;  ///< of a question
constexpr moment latest = 800ms; ///< a letter
constexpr moment redial = 5s;
const mesh_view::pace pace{.again = 500ms, .longest = 8s, .refresh = 30s, .hint = 50ms};

const std::array<std::vector<std::string>, 4> kinds{{{"tokenizer", "gateway"}, {"router", "session"},
  {"prefill", "decode", "cache"}, {"tokenizer", "router", "session"}}};

/// What others may use of a node that is ready or drains.
std::set<std::string> offers(const std::vector<std::string>& roles) {
  std::set<std::string> out;
  for (const auto& role : roles)
    if (role == "tokenizer" || role == "router")
      out.insert(role);
    else if (role == "session")
      out.insert("directory");
    else if (role == "decode")
      out.insert("worker");
  return out;
}

enum class condition { starting, ready, draining };
constexpr std::array words{"starting", "ready", "draining"};

/// A process, while it lives.
struct process {
  std::vector<std::string> roles;
  std::set<std::string> parts; ///< that are ready while it starts
  condition state = condition::starting;
  bool stuck = false; ///< it starts for ever
  moment changed{0};  ///< it, last
  moment since{0};
  registry_view listed;
  mesh_view view{{{"m", "f"}}, pace};
  /// What was put in place by changes, as tables of roles have it: name and role, and whether it drains.
  std::map<std::pair<node_name, std::string>, bool> in_place;

  explicit process(node_name self) : listed(std::move(self), beat_limit) {}

  letter<schema::NodeStatus> status(const node_name& name) const {
    return letter<schema::NodeStatus>::make([&](schema::NodeStatus::Builder b) {
      b.setName(name.value);
      b.setState(words[static_cast<std::size_t>(state)]);
      auto all = b.initRoles(static_cast<unsigned>(roles.size()));
      for (unsigned i = 0; i < roles.size(); ++i)
        all.set(i, roles[i]);
      auto actors = b.initActors(static_cast<unsigned>(parts.size()));
      unsigned i = 0;
      for (const auto& part : parts) {
        actors[i].setName(part);
        actors[i++].setState("ready");
      }
      b.setModel("m");
      b.setFingerprint("f");
      b.setCapacity(4);
    });
  }
};

/// One direction of two nodes: what `to` hears of `from`.
struct way {
  bool up = false; ///< as `to` sees it
  std::uint64_t conversation = 0;
  moment busy{0}; ///< letters keep their order
  moment asked = moment::min();
  bool open = false;   ///< a question of this conversation has no answer yet
  bool failed = false; ///< the last question
  std::size_t questions = 0;
};

class world {
 public:
  explicit world(std::uint64_t seed) : random_(seed) {
    for (std::size_t i = 0; i < count; ++i) {
      names_[i] = node_name(std::string("n") + std::to_string(i));
      at(any(0ms, 2s), [this, i] { start(i); });
    }
    for (moment when = 2s; when < storm; when += any(0ms, 3s))
      at(when, [this] { trouble(); });
    at(storm, [this] { calm(); });
    for (moment when = look; when < end_; when += look)
      at(when, [this] { check(); });
    at(count_from_, [this] { counts_ = true; });
  }

  void run() {
    while (!events_.empty() && events_.top().when <= end_) {
      const auto next = events_.top();
      events_.pop();
      now_ = next.when;
      next.what();
    }
    check_the_calm();
  }

 private:
  struct event {
    moment when;
    std::uint64_t order;
    std::function<void()> what;
    bool operator<(const event& other) const {
      return std::pair(when, order) > std::pair(other.when, other.order);
    }
  };
  struct row {
    std::uint64_t incarnation;
    moment beat;
  };

  void at(moment when, std::function<void()> what) {
    events_.push({std::max(when, now_), ++order_, std::move(what)});
  }
  void in(moment delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }
  /// The same if the process is still that one.
  void in_life(std::size_t who, moment delay, std::function<void()> what) {
    in(delay, [this, who, life = lives_[who], what = std::move(what)] {
      if (all_[who] && lives_[who] == life)
        what();
    });
  }
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  bool chance(unsigned percent) { return draw(100) < percent; }
  moment any(moment least, moment most) {
    return least
           + moment(static_cast<moment::rep>(draw(static_cast<std::uint64_t>((most - least).count()) + 1)));
  }

  // --- processes ---

  void start(std::size_t who) {
    const auto found = table_.find(names_[who]);
    if (all_[who])
      return;
    // A name whose last beat is young is another process's.
    if (!table_up_ || (found != table_.end() && now_ - found->second.beat <= beat_limit))
      return in(1s, [this, who] { start(who); });
    ++lives_[who];
    all_[who] = std::make_unique<process>(names_[who]);
    all_[who]->roles = kinds[draw(kinds.size())];
    all_[who]->since = all_[who]->changed = now_;
    table_[names_[who]] = {lives_[who], now_};
    beat(who);
    read(who);
    read_again(who);
    notify();
    grow(who);
  }
  /// Its parts become ready, then it itself.
  void grow(std::size_t who) {
    in_life(who, chance(10) ? any(10s, 40s) : any(50ms, 4s), [this, who] {
      auto& one = *all_[who];
      if (one.state != condition::starting || one.stuck)
        return;
      for (const auto& role : one.roles)
        if (!one.parts.contains(role) && chance(60)) {
          one.parts.insert(role);
          // What is offered is told.
          one.changed = now_;
          hint(who);
          return grow(who);
        }
      one.state = condition::ready;
      one.changed = now_;
      // The part that was waited for may have been one that nobody offers.
      if (chance(80))
        hint(who);
    });
  }
  void kill(std::size_t who) {
    all_[who].reset();
    died_[who] = now_;
    for (std::size_t other = 0; other < count; ++other)
      if (other != who)
        break_wire(who, other, silent);
    if (now_ < storm)
      in(any(0ms, 20s), [this, who] { start(who); });
  }
  void drain(std::size_t who) {
    if (all_[who]->state == condition::draining)
      return;
    all_[who]->state = condition::draining;
    all_[who]->changed = now_;
    hint(who);
    in_life(who, any(0ms, 30s), [this, who] {
      table_.erase(names_[who]);
      notify();
      all_[who].reset();
      died_[who] = now_;
      for (std::size_t other = 0; other < count; ++other)
        if (other != who)
          break_wire(who, other, 100ms); // it says goodbye
      if (now_ < storm)
        in(any(0ms, 10s), [this, who] { start(who); });
    });
  }

  void trouble() {
    const auto who = draw(count);
    const auto other = (who + 1 + draw(count - 1)) % count;
    switch (draw(7)) {
    case 0:
      if (all_[who])
        kill(who);
      break;
    case 1:
      if (all_[who])
        drain(who);
      break;
    case 2:
    case 3:
      // A router that has lost its last worker waits again, and tells nobody.
      if (all_[who] && all_[who]->state == condition::ready) {
        all_[who]->state = condition::starting;
        all_[who]->changed = now_;
        grow(who);
      }
      break;
    case 4:
      cut_.insert(std::minmax(who, other));
      break_wire(who, other, deaf);
      in(any(0ms, 15s), [this, who, other] {
        cut_.erase(std::minmax(who, other));
        connect(who, other);
      });
      break;
    case 5:
      if (!std::exchange(table_up_, false))
        break;
      in(any(0ms, 20s), [this] { table_back(); });
      break;
    default:
      if (all_[who])
        hint(who); // nothing has changed
    }
  }
  void calm() {
    table_back();
    // One that waits for somebody who does not come.
    if (const auto who = draw(count); all_[who] && all_[who]->state != condition::draining) {
      all_[who]->state = condition::starting;
      all_[who]->stuck = true;
      all_[who]->changed = now_;
    }
    cut_.clear();
    for (std::size_t one = 0; one < count; ++one)
      for (std::size_t other = 0; other < one; ++other)
        connect(one, other);
  }
  void table_back() {
    if (!std::exchange(table_up_, true))
      table_since_ = now_;
  }

  // --- the table ---

  void beat(std::size_t who) {
    if (table_up_)
      table_[names_[who]] = {lives_[who], now_};
    else
      all_[who]->listed.away(now_);
    in_life(who, 1s, [this, who] { beat(who); });
  }
  void read_again(std::size_t who) {
    in_life(who, reading, [this, who] {
      read(who);
      read_again(who);
    });
  }
  /// Who has joined or left in good order, unless the news is lost.
  void notify() {
    for (std::size_t who = 0; who < count; ++who)
      if (all_[who] && chance(80))
        in_life(who, any(0ms, latest), [this, who] { read(who); });
  }
  void read(std::size_t who) {
    auto& one = *all_[who];
    if (!table_up_)
      return one.listed.away(now_);
    std::vector<tabled_node> rows;
    for (const auto& [name, each] : table_) {
      tabled_node out;
      out.record.name = name;
      out.record.incarnation = each.incarnation;
      out.age = now_ - each.beat;
      rows.push_back(std::move(out));
    }
    for (const auto& change : one.listed.read(rows, now_)) {
      const auto other = static_cast<std::size_t>(change.node.name.value[1] - '0');
      if (change.there) {
        one.view.known(change.node.name);
        connect(who, other);
      } else {
        if (all_[other])
          wrong(who, change.node.name, "it beats, and is taken off the list");
        put(who, one.view.forgotten(change.node.name));
        hear(other, who).up = false;
        break_wire(who, other, 100ms);
      }
    }
    if (const auto next = one.listed.next(); next != moment::max())
      in_life(who, next - now_, [this, who] { read(who); });
  }

  // --- wires ---

  way& hear(std::size_t from, std::size_t to) { return ways_[from][to]; }
  bool knows(std::size_t who, std::size_t other) const {
    return all_[who] && all_[who]->listed.listed().contains(names_[other]);
  }
  bool reaches(std::size_t who, std::size_t other) const {
    return all_[who] && all_[other] && !cut_.contains(std::minmax(who, other)) && knows(who, other)
           && knows(other, who);
  }
  /// They will find each other, if nothing comes between.
  void connect(std::size_t who, std::size_t other) {
    in(any(50ms, redial), [this, who, other] {
      auto& there = hear(who, other);
      auto& back = hear(other, who);
      if (!reaches(who, other) || joined_.contains(std::minmax(who, other)))
        return;
      // Whoever still takes the earlier conversation for one that lives is told that it has ended.
      if (there.up)
        lose(who, other);
      if (back.up)
        lose(other, who);
      joined_.emplace(std::minmax(who, other), now_);
      for (auto* each : {&there, &back}) {
        each->up = true;
        each->conversation = ++conversations_;
        each->busy = now_;
        each->asked = moment::min();
        each->open = false;
        each->failed = false;
      }
      all_[other]->view.came(names_[who], now_);
      all_[who]->view.came(names_[other], now_);
      arm(who);
      arm(other);
    });
  }
  /// What is under way between them is lost at once, and both hear of it some time later.
  void break_wire(std::size_t who, std::size_t other, moment within) {
    if (joined_.erase(std::minmax(who, other)) == 0)
      return;
    for (const auto& [from, to] : {std::pair(who, other), std::pair(other, who)})
      if (all_[to] && hear(from, to).up)
        in_life(to, any(0ms, within), [this, from = from, to = to, which = hear(from, to).conversation] {
          if (hear(from, to).up && hear(from, to).conversation == which) {
            lose(from, to);
            connect(from, to);
          }
        });
      else
        hear(from, to).up = false;
  }
  void lose(std::size_t from, std::size_t to) {
    hear(from, to).up = false;
    put(to, all_[to]->view.went(names_[from], "it is silent"));
  }
  /// A letter, if it comes.
  void deliver(std::size_t from, std::size_t to, std::function<void()> what) {
    if (!joined_.contains(std::minmax(from, to)))
      return;
    auto& wire = hear(from, to);
    wire.busy = std::max(wire.busy, now_ + any(0ms, latest));
    at(wire.busy, [this, from, to, which = wire.conversation, what = std::move(what)] {
      if (joined_.contains(std::minmax(from, to)) && hear(from, to).conversation == which)
        what();
    });
  }
  void hint(std::size_t who) {
    for (std::size_t other = 0; other < count; ++other)
      if (other != who && all_[who]->view.is_up(names_[other]))
        deliver(who, other, [this, who, other] {
          all_[other]->view.hinted(names_[who], now_);
          arm(other);
        });
  }

  // --- questions ---

  void arm(std::size_t who) {
    const auto next = all_[who]->view.next();
    if (next != moment::max())
      in_life(who, std::max(next - now_, 0ms), [this, who] { ask(who); });
  }
  void ask(std::size_t who) {
    for (const auto& question : all_[who]->view.due(now_)) {
      const auto whom = static_cast<std::size_t>(question.node.value[1] - '0');
      auto& wire = hear(whom, who);
      // One at a time is asked, and never without a pause.
      if (wire.asked != moment::min() && now_ - wire.asked < pace.hint)
        wrong(who, question.node, "asked twice in a moment");
      if (std::exchange(wire.open, true))
        wrong(who, question.node, "asked while it is asked");
      wire.asked = now_;
      wire.questions += counts_ ? 1U : 0U;
      const auto answered = std::make_shared<bool>(false);
      // Some are lost in an actor that is slow, but not one after the other.
      if (wire.failed || chance(95)) {
        wire.failed = false;
        deliver(who, whom, [this, who, whom, question, answered] {
          const auto status = all_[whom]->status(names_[whom]);
          deliver(whom, who, [this, who, whom, question, answered, status] {
            *answered = true;
            hear(whom, who).open = false;
            put(who, all_[who]->view.answered(question, status.read(), now_));
            arm(who);
          });
        });
      } else {
        wire.failed = true;
      }
      in_life(who, patience, [this, who, whom, question, answered, which = wire.conversation] {
        if (*answered)
          return;
        if (hear(whom, who).conversation == which)
          hear(whom, who).open = false;
        all_[who]->view.failed(question, {errc::deadline, "too late", {}, {}}, now_);
        arm(who);
      });
    }
    arm(who);
  }

  // --- what must hold ---

  void put(std::size_t who, const mesh_view::changes& changes) {
    auto& places = all_[who]->in_place;
    for (const auto& each : changes) {
      const auto place = places.find({each.node, each.name});
      if (each.there && place != places.end() && place->second == each.draining)
        wrong(who, each.node, each.name + " is in use and put into use once more");
      if (!each.there && place == places.end())
        wrong(who, each.node, each.name + " is not in use and taken out of it");
      if (each.there)
        places[{each.node, each.name}] = each.draining;
      else
        places.erase(place);
    }
  }

  void wrong(std::size_t who, const node_name& of, const std::string& what) const {
    FAIL("after " << now_.count() << " ms, of " << of.value << " at " << names_[who].value << ": " << what);
  }

  /// What is in use of a node, worker included, and whether it drains.
  static std::map<std::string, bool> used(
    const process& by, const node_name& name, const std::map<node_name, mesh_view::node>& shown) {
    std::map<std::string, bool> out;
    for (const auto* role : {"tokenizer", "router", "directory"})
      for (const auto& each : by.view.in_use(role))
        if (each.node == name && !out.emplace(role, each.draining).second)
          FAIL(name.value << " is in use twice");
    if (const auto found = shown.find(name); found != shown.end() && found->second.worker)
      out.emplace("worker", found->second.draining);
    return out;
  }

  moment joined_for(std::size_t who, std::size_t other) const {
    const auto found = joined_.find(std::minmax(who, other));
    return found == joined_.end() ? moment::min() : now_ - found->second;
  }

  void check() {
    for (std::size_t who = 0; who < count; ++who)
      if (all_[who]) {
        const auto shown = all_[who]->view.nodes();
        for (std::size_t other = 0; other < count; ++other)
          if (other != who)
            check(*all_[who], who, other, shown);
      }
  }
  void check(const process& one, std::size_t who, std::size_t other,
    const std::map<node_name, mesh_view::node>& shown) const {
    const auto& name = names_[other];
    const auto now = used(one, name, shown);
    const auto listed = one.listed.listed().contains(name);
    std::map<std::string, bool> placed;
    for (const auto& [place, draining] : one.in_place)
      if (place.first == name)
        placed.emplace(place.second, draining);
    auto handles = now;
    handles.erase("worker");
    if (handles != placed)
      wrong(who, name, "what is in use is not what was put into place");
    if (!now.empty() && !one.view.is_up(name))
      wrong(who, name, "not up, and in use");
    if (shown.contains(name) != listed)
      wrong(who, name, "the registry and the list of nodes differ");
    const auto calm_table = table_up_ ? now_ - table_since_ : 0ms;
    if (!all_[other]) {
      const auto gone = now_ - died_[other];
      if (gone > deaf && !now.empty()) // the wire may have been cut just before
        wrong(who, name, "gone, and in use");
      // When the table is back all have twice the limit's time to beat, counted from the last who missed it.
      if (std::min(gone, calm_table) > 2 * beat_limit + beat_limit + reading + 1s && listed)
        wrong(who, name, "gone, and listed");
      return;
    }
    const auto& there = *all_[other];
    const auto seen = std::min(calm_table, now_ - std::max(one.since, there.since));
    if (seen > reading + 2s && !listed)
      wrong(who, name, "it beats, and is not listed");
    if (std::min(seen, now_ - storm) > reading + 2s + silent + 1s + redial
        && joined_for(who, other) == moment::min())
      wrong(who, name, "they reach each other, and are not up");
    if (there.state == condition::starting)
      return;
    // A question was asked just before, and is lost; then the pause is at its longest.
    const auto bound = 2 * pace.longest + patience + 4 * latest;
    if (std::min(now_ - there.changed, joined_for(who, other)) <= bound)
      return;
    std::map<std::string, bool> expected;
    for (const auto& role : offers(there.roles))
      expected.emplace(role, there.state == condition::draining);
    if (now != expected)
      wrong(who, name, "ready or draining, and not in use as that");
  }

  void check_the_calm() {
    check();
    // An idle mesh says little: a node that is ready is asked each half minute, one that is not at its pace.
    for (std::size_t who = 0; who < count; ++who)
      for (std::size_t other = 0; other < count; ++other) {
        INFO(names_[who].value << " asks " << names_[other].value);
        if (who == other || !all_[who] || !all_[other] || all_[other]->changed > storm)
          continue;
        const auto often = all_[other]->state == condition::starting ? pace.longest : pace.refresh;
        // A question that was lost is put once more.
        CHECK(hear(other, who).questions <= static_cast<std::size_t>((end_ - count_from_) / often) + 2);
      }
  }

  std::mt19937_64 random_;
  std::priority_queue<event> events_;
  std::uint64_t order_ = 0;
  moment now_{0};
  const moment end_ = storm + 70s;
  const moment count_from_ = storm + 40s;
  std::array<node_name, count> names_;
  std::array<std::unique_ptr<process>, count> all_;
  std::array<std::uint64_t, count> lives_{};
  std::array<moment, count> died_{};
  std::array<std::array<way, count>, count> ways_;
  std::map<std::pair<std::size_t, std::size_t>, moment> joined_; ///< since when they talk
  std::set<std::pair<std::size_t, std::size_t>> cut_;
  std::uint64_t conversations_ = 0;
  std::map<node_name, row> table_;
  bool counts_ = false; ///< questions
  bool table_up_ = true;
  moment table_since_{0};
};

} // namespace

TEST_CASE("nodes that come, go and are cut off at random use all who are ready, and nobody who is gone") {
  const auto first = asked_number("GODWIT_MESH_FIRST_SEED", 1);
  const auto lives = asked_number("GODWIT_MESH_SEEDS", on_one_thread(30));
  for (auto seed = first; seed < first + lives; ++seed) {
    INFO("GODWIT_MESH_FIRST_SEED=" << seed << " GODWIT_MESH_SEEDS=1 runs it again");
    world(seed).run();
  }
}
