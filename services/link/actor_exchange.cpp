#include "services/link/actor_exchange.hpp"

#include "actors/trace/timeout_watch.hpp"
#include "actors/trace/trace_scope.hpp"
#include "messages/actor_error.hpp"
#include "messages/respond.hpp"
#include "services/link/asked_requests.hpp"
#include "services/link/end_watch.hpp"
#include "services/link/given_actors.hpp"
#include "services/link/open_requests.hpp"
#include "services/link/remote_actor.hpp"
#include "services/link/remote_handles.hpp"
#include "services/link/untaken_letters.hpp"

#include <caf/abstract_actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/make_actor.hpp>

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace godwit::link {

namespace {

/// What a message has beside its letter; the same as frames allow.
constexpr std::size_t most_extras = frame_limits{}.extras;

/// For which cause an actor that has ended waits for nothing any more.
end_cause cause_of_end(const caf::error& reason) {
  if (!reason || reason == caf::exit_reason::unreachable)
    return end_cause::cancelled; // it is done, and wants no answer
  if (reason == caf::exit_reason::user_shutdown)
    return end_cause::draining;
  const auto cause = cause_of(from_caf_error(reason).code);
  return cause == end_cause::none ? end_cause::peer_lost : cause;
}

class exchange;

/// References as one other node uses them, in one message.
class node_references final : public reference_table {
 public:
  node_references(exchange& home, std::string node) : home_(home), node_(std::move(node)) {}
  result<actor_reference> give(const caf::strong_actor_ptr& actor, const interface_codec& as) override;
  result<caf::strong_actor_ptr> take(const actor_reference& named, const interface_codec& as) override;

  /// The message is on its way.
  void sent(mesh_link& link);
  /// It is not sent after all: the node will never drop what it was given in it.
  void not_sent();

 private:
  exchange& home_;
  std::string node_;
  std::vector<std::uint64_t> given_;
};

class exchange final : public actor_exchange,
                       public remote_home,
                       public std::enable_shared_from_this<exchange> {
 public:
  exchange(caf::actor_system& system, exchange_options options)
    : system_(system), options_(options), given_(options.references) {}

  void use(const std::shared_ptr<mesh_link>& link) override {
    link_ = link;
    // None of these may keep the exchange alive, which owns them.
    const auto weak = weak_from_this();
    ends_ = std::make_shared<end_watch>([weak](caf::actor_id actor, const caf::error& reason) {
      if (const auto self = weak.lock())
        self->ended(actor, reason);
    });
    timeouts_ = timeout_watch::listen([weak](const caf::actor_control_block& asker, caf::message_id request) {
      const auto self = weak.lock();
      if (self && asker.home_system == &self->system_)
        self->cancel(
          self->open_.give_up(asker.id(), request.integer_value(), end_cause::deadline), end_cause::deadline);
    });
  }

  void watch_peers(std::function<void(const peer_change&)> watcher) override {
    const std::lock_guard lock(mutex_);
    watcher_ = std::move(watcher);
  }

  void close() override {
    closed_ = true;
    const auto dead = remotes_.lose_all();
    const auto given = given_.close();
    decltype(published_) published;
    {
      const std::lock_guard lock(mutex_);
      published.swap(published_);
      watcher_ = nullptr;
    }
    timeouts_ = nullptr;
    for (const auto& each : asked_.clear())
      end_asker(each, end_cause::draining);
    kill(dead);
    // What was held is let go here, without the lock: ends of actors come back to this class.
  }

  void withdraw(const std::string& name) override {
    reached_actor gone;
    const std::lock_guard lock(mutex_);
    const auto found = published_.find(name);
    if (found == published_.end())
      return;
    gone = std::move(found->second);
    published_.erase(found);
  }

  std::size_t references() const override { return given_.size(); }

  exchange_counts counts() const override {
    exchange_counts out{dead_letters_.load(std::memory_order_relaxed),
      malformed_.load(std::memory_order_relaxed), 0, overflows_.load(std::memory_order_relaxed)};
    const std::lock_guard lock(senders_mutex_);
    for (const auto& [node, one] : senders_)
      out.untaken += static_cast<std::uint64_t>(one.untaken.places());
    return out;
  }

  // --- from other nodes; the link's thread ---

  void on_letter(const incoming& mail) override {
    auto& from = sender_of(mail.from);
    if (from.lost_place)
      return letter_lost(); // it would stand behind one that is missing
    if (from.untaken.full())
      return overload(from, std::string(mail.from));
    const auto [to, signature] = find(mail);
    if (!to.actor || has_ended(to.actor))
      return letter_lost();
    if (signature == nullptr)
      return count(malformed_);
    node_references table(*this, std::string(mail.from));
    auto content = signature->in.unpack(mail, table);
    if (content)
      to.actor->enqueue(from.untaken.hand_out(std::move(*content), bytes_of(mail)), nullptr);
    else if (names_nobody(content.error()))
      letter_lost();
    else
      count(malformed_);
  }

  void on_request(const incoming& mail, const reply_token& token) override {
    const auto link = link_.lock();
    if (!link)
      return;
    const error stopping{errc::draining, "this node is stopping", {}, {}};
    // What is not found may be what close() has let go a moment ago.
    const auto refuse = [&](const error& why) { link->fail(token, closed_ ? stopping : why); };
    if (closed_)
      return refuse(stopping);
    const auto [to, signature] = find(mail);
    if (!to.actor)
      return refuse(
        {errc::not_found, "no actor is called " + std::string(mail.header.name) + " here", {}, {}});
    if (signature == nullptr)
      return refuse({errc::unsupported, "the actor does not know this message", {}, {}});
    node_references table(*this, std::string(mail.from));
    auto content = signature->in.unpack(mail, table);
    if (!content) {
      if (!names_nobody(content.error()))
        count(malformed_);
      return refuse(content.error());
    }
    const auto number = asked_.next();
    caf::actor_config config;
    const auto asker = caf::make_actor<remote_asker, caf::strong_actor_ptr>(
      system_.next_actor_id(), system_.node(), &system_, config, weak_from_this(), number, mail.header.trace);
    asked_requests::request asked{token, signature, asker, {}, {}};
    if (options_.served && mail.header.trace.sampled()) {
      asked.actor =
        mail.header.target == 0 ? std::string(mail.header.name) : std::to_string(mail.header.target);
      asked.since = std::chrono::steady_clock::now();
    }
    asked_.add(number, std::move(asked));
    if (closed_) {
      // close() may have ended those that were asked without this one.
      if (const auto late = asked_.forget(token)) {
        end_asker(*late, end_cause::draining);
        return refuse(stopping);
      }
    }
    to.actor->enqueue(asker, caf::make_message_id(number), std::move(*content), nullptr);
  }

  void on_cancel(const reply_token& token, end_cause cause) override {
    if (const auto request = asked_.forget(token))
      end_asker(*request, cause);
  }

  void on_reference(const incoming& mail) override {
    const auto id = mail.header.source;
    const std::string node(mail.from);
    if (mail.header.kind == frame_kind::released)
      given_.release(id, node, mail.header.correlation);
    else
      kill(remotes_.find(node, id));
  }

  void on_peer(const peer_change& change) override {
    const std::string node(change.node);
    std::vector<given_actors::given> gone;
    bool news = change.up;
    if (change.up)
      given_.node_up(node);
    else
      std::tie(news, gone) = given_.node_lost(node);
    sender_changed(node, change.up);
    std::function<void(const peer_change&)> watcher;
    {
      const std::lock_guard lock(mutex_);
      watcher = watcher_;
    }
    if (news && !change.up)
      kill(remotes_.lose(node));
    if (news && watcher)
      watcher(change);
  }

  // --- to other nodes; any thread ---

  void forward(remote_actor& from, const signature_codec& signature, caf::mailbox_element& what) override {
    const caf::strong_actor_ptr self(from.ctrl());
    const auto refuse = [&](const error& why) {
      if (!what.mid.is_request())
        return letter_lost();
      respond(what.sender, what.mid, self, caf::make_message(to_caf_error(why)));
    };
    const auto link = link_.lock();
    if (!link || closed_)
      return refuse({errc::draining, "the link to other nodes has stopped", {}, {}});
    node_references table(*this, from.where().node);
    const auto packed = signature.in.pack(what.content(), table);
    if (!packed || packed->extras.size() > most_extras) {
      table.not_sent();
      return refuse(
        !packed ? packed.error()
                : error{errc::too_large, "the texts of a message are too long for another node", {}, {}});
    }
    message mail{.type = packed->type,
      .words = packed->words,
      .attachments = packed->attachments,
      .extras = packed->extras,
      .source = what.sender ? what.sender->id() : 0,
      .trace = trace_to_send(what.sender)};
    if (!what.mid.is_request()) {
      link->send(from.where(), mail, options_.letter);
      return table.sent(*link);
    }
    // Its asker is watched behind its place here: what ends in between is heard of.
    const auto asker = what.sender ? what.sender->id() : caf::invalid_actor_id;
    const auto key = open_.open(asker, what.mid.request_id().integer_value());
    if (what.sender)
      ends_->watch(what.sender);
    const auto number = link->request(from.where(), mail, options_.answer,
      [this, alive = shared_from_this(), self, sender = what.sender, id = what.mid, &signature, key,
        node = from.where().node](const result<incoming>& got) {
        open_.close(key);
        respond(sender, id, self, answer_of(got, signature, node));
      });
    if (const auto over = open_.sent(key, number); over != end_cause::none)
      link->cancel(number, over);
    table.sent(*link);
  }

  void letter_lost() override { count(dead_letters_); }

  void dropped(
    const actor_address& where, std::uint64_t references) override { // perhaps with the lock: takes none
    if (where.id == 0 || references == 0 || closed_)
      return;
    if (const auto link = link_.lock())
      link->refer(where.node, frame_kind::released, where.id, references, end_cause::none);
  }

  // --- references ---

  result<actor_reference> give(
    const std::string& node, const caf::strong_actor_ptr& actor, const interface_codec& as) {
    if (!actor)
      return fail(errc::invalid_argument, "a message holds a handle of no actor");
    if (const auto* const remote = dynamic_cast<const remote_actor*>(actor->get());
        remote != nullptr && remote->where().node == node)
      return actor_reference{true, remote->where().id, remote->where().name};
    const auto number = given_.give(node, actor, as);
    if (!number)
      return fail(number);
    ends_->watch(actor);
    // One that had ended already was let go at once; the other node would never hear of it.
    if (!given_.holds(*number))
      return fail(errc::peer_lost, "an actor that a message names has ended");
    return actor_reference{false, *number, {}};
  }

  /// Tells a node once more of actors that ended while the message that gives them was made: it may have
  /// heard of their ends before it heard of them.
  void given_to(mesh_link& link, const std::string& node, const std::vector<std::uint64_t>& numbers) {
    for (const auto number : numbers)
      if (!given_.holds(number))
        link.refer(node, frame_kind::gone, number, 0, end_cause::none);
  }

  void take_back(const std::string& node, const std::vector<std::uint64_t>& numbers) {
    for (const auto number : numbers)
      given_.release(number, node, 1);
  }

  result<caf::strong_actor_ptr> take(
    const std::string& node, const actor_reference& named, const interface_codec& as) {
    if (!named.yours)
      return remotes_.numbered(node, named.id, as, [&] { return make_remote({node, {}, named.id}, as); });
    const auto found = local(named.id, named.name, node);
    if (!found)
      return fail(errc::peer_lost, "the actor that a message names has ended");
    // It came from here with this interface, or it was published with one that has all of it.
    if (found->codec != &as && !covers(*found->codec, as))
      return fail(errc::corrupt, "an actor does not have the interface that a message says");
    return found->actor;
  }

 private:
  /// Another node as one that sends letters.
  struct sender {
    explicit sender(std::int64_t most) : untaken(most) {}

    untaken_letters untaken;
    bool lost_place = false; ///< in this conversation
  };

  /// On the link's thread, the only one that changes the map.
  sender& sender_of(std::string_view node) {
    const auto found = senders_.find(node);
    if (found != senders_.end())
      return found->second;
    const std::lock_guard lock(senders_mutex_);
    return senders_.try_emplace(std::string(node), options_.untaken).first->second;
  }

  void sender_changed(const std::string& node, bool up) {
    const auto found = senders_.find(node);
    if (found == senders_.end())
      return;
    found->second.lost_place = false;
    // What actors have not taken counts in the next conversation too.
    if (up || found->second.untaken.places() != 0)
      return;
    const std::lock_guard lock(senders_mutex_);
    senders_.erase(found);
  }

  /// Actors here are slower than a node sends to them, or stand still.
  void overload(sender& from, const std::string& node) {
    from.lost_place = true;
    count(overflows_);
    letter_lost();
    if (const auto link = link_.lock())
      link->overload(node);
  }

  static std::size_t bytes_of(const incoming& mail) {
    auto out = mail.words.size() + mail.header.extras.size();
    for (const auto& each : mail.attachments)
      out += each.bytes.size();
    return out;
  }

  static void count(std::atomic<std::uint64_t>& which) { which.fetch_add(1, std::memory_order_relaxed); }

  /// CAF drops what comes to an actor that has ended, and says so to nobody.
  static bool has_ended(const caf::strong_actor_ptr& actor) {
    return actor->get()->getf(caf::abstract_actor::is_terminated_flag);
  }

  /// A message is in order and an actor that it names has ended: see take().
  static bool names_nobody(const error& why) { return why.code == errc::peer_lost; }

  static bool covers(const interface_codec& all, const interface_codec& part) {
    for (const auto& each : part.signatures)
      if (all.find(each.in.type) == nullptr)
        return false;
    return true;
  }

  void publish_as(
    const std::string& name, caf::strong_actor_ptr actor, const interface_codec& codec) override {
    reached_actor before;
    const std::lock_guard lock(mutex_);
    auto& place = published_[name];
    before = std::exchange(place, {std::move(actor), &codec});
  }

  caf::strong_actor_ptr remote_as(
    const std::string& node, const std::string& name, const interface_codec& codec) override {
    return remotes_.named(node, name, codec, [&] { return make_remote({node, name, 0}, codec); });
  }

  caf::strong_actor_ptr make_remote(actor_address where, const interface_codec& codec) {
    caf::actor_config config;
    return caf::make_actor<remote_actor, caf::strong_actor_ptr>(
      system_.next_actor_id(), system_.node(), &system_, config, shared_from_this(), std::move(where), codec);
  }

  /// Which actor here is meant.
  std::optional<reached_actor> local(std::uint64_t id, std::string_view name, std::string_view node) const {
    if (id != 0)
      return given_.find(id, node);
    const std::lock_guard lock(mutex_);
    const auto found = published_.find(name);
    return found == published_.end() ? std::nullopt : std::optional(found->second);
  }

  std::pair<reached_actor, const signature_codec*> find(const incoming& mail) const {
    auto found = local(mail.header.target, mail.header.name, mail.from);
    if (!found)
      return {};
    const auto* const signature = found->codec->find(mail.header.type);
    return {std::move(*found), signature};
  }

  caf::message answer_of(
    const result<incoming>& got, const signature_codec& signature, const std::string& node) {
    if (!got)
      return caf::make_message(to_caf_error(got.error()));
    if (got->header.type != signature.out.type)
      return caf::make_message(
        to_caf_error({errc::corrupt, "the answer of another node is of another type", {}, {}}));
    node_references table(*this, node);
    auto content = signature.out.unpack(*got, table);
    return content ? std::move(*content) : caf::make_message(to_caf_error(content.error()));
  }

  void answered(std::uint64_t number, const caf::type_erased_tuple& content) override {
    const auto waiting = asked_.take(number);
    const auto link = link_.lock();
    if (!waiting || !link)
      return; // nobody waits any more
    const auto done = answer(*link, *waiting, content);
    if (!done)
      link->fail(waiting->token, done.error());
    tell_served(*waiting, done ? std::nullopt : std::optional(done.error().code));
  }

  result<void> answer(
    mesh_link& link, const asked_requests::request& request, const caf::type_erased_tuple& content) {
    if (content.match_elements<caf::error>())
      return tl::unexpected<error>(from_caf_error(content.get_as<caf::error>(0)));
    const auto& codec = request.signature->out;
    message mail;
    mail.trace = asker_of(request).carried();
    if (codec.type == 0) {
      link.reply(request.token, mail);
      return {};
    }
    if (!codec.matches(content))
      return fail(errc::internal, "an actor's answer is not of its interface");
    node_references table(*this, request.token.node);
    const auto packed = codec.pack(content, table);
    if (!packed || packed->extras.size() > most_extras) {
      table.not_sent();
      return !packed ? fail(packed)
                     : fail(errc::too_large, "the texts of an answer are too long for another node");
    }
    mail.type = packed->type;
    mail.words = packed->words;
    mail.attachments = packed->attachments;
    mail.extras = packed->extras;
    link.reply(request.token, mail);
    table.sent(link);
    return {};
  }

  static remote_asker& asker_of(const asked_requests::request& which) {
    return static_cast<remote_asker&>(*which.asker->get());
  }

  void tell_served(const asked_requests::request& which, std::optional<errc> failure) const {
    const auto& trace = asker_of(which).carried();
    if (!options_.served || !trace.sampled())
      return;
    options_.served({which.token.node, which.actor, trace,
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - which.since),
      failure});
  }

  /// A local actor has ended: those who hold it are told, and those whom it has asked.
  void ended(caf::actor_id actor, const caf::error& reason) {
    const auto cause = cause_of_end(reason);
    cancel(open_.give_up(actor, cause), cause);
    const auto gone = given_.ended(actor);
    if (const auto link = link_.lock(); link && !closed_)
      for (const auto& each : gone)
        link->refer(each.node, frame_kind::gone, each.id, 0, end_cause::none);
  }

  void cancel(const std::vector<std::uint64_t>& requests, end_cause cause) {
    if (const auto link = link_.lock(); link && !closed_)
      for (const auto each : requests)
        link->cancel(each, cause);
  }

  /// Tells whoever works for a request of another node that nobody waits for it any more.
  void end_asker(const asked_requests::request& which, end_cause cause) const {
    const auto why = error_of(cause == end_cause::none ? end_cause::cancelled : cause);
    asker_of(which).kill_proxy(nullptr, to_caf_error({why, "whoever asked waits no more", {}, {}}));
    tell_served(which, why);
  }

  static void kill(const std::vector<caf::strong_actor_ptr>& dead) {
    for (const auto& each : dead)
      static_cast<remote_actor*>(each->get())
        ->kill_proxy(nullptr, caf::make_error(caf::exit_reason::remote_link_unreachable));
  }

  caf::actor_system& system_;
  exchange_options options_;
  std::weak_ptr<mesh_link> link_;
  std::atomic<bool> closed_{false};
  std::atomic<std::uint64_t> dead_letters_{0};
  std::atomic<std::uint64_t> malformed_{0};
  std::atomic<std::uint64_t> overflows_{0};
  std::shared_ptr<end_watch> ends_;
  std::shared_ptr<void> timeouts_;
  open_requests open_;
  asked_requests asked_;
  given_actors given_;
  remote_handles remotes_;

  mutable std::mutex senders_mutex_;
  std::map<std::string, sender, std::less<>> senders_;

  mutable std::mutex mutex_;
  std::map<std::string, reached_actor, std::less<>> published_;
  std::function<void(const peer_change&)> watcher_;
};

result<actor_reference> node_references::give(const caf::strong_actor_ptr& actor, const interface_codec& as) {
  auto named = home_.give(node_, actor, as);
  if (named && !named->yours)
    given_.push_back(named->id);
  return named;
}

void node_references::sent(mesh_link& link) {
  home_.given_to(link, node_, given_);
}

void node_references::not_sent() {
  home_.take_back(node_, given_);
}

result<caf::strong_actor_ptr> node_references::take(const actor_reference& named, const interface_codec& as) {
  return home_.take(node_, named, as);
}

} // namespace

std::shared_ptr<actor_exchange> actor_exchange::make(caf::actor_system& system, exchange_options options) {
  return std::make_shared<exchange>(system, options);
}

} // namespace godwit::link
