// How a directory lists a tenant's sessions.

#include "actors/directory/directory_shell.hpp"
#include "messages/actor_error.hpp"
#include "messages/text.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace godwit::detail {

/// A page on its way: the sessions on it tell their state, each in its time.
struct directory_shell::page {
  std::vector<std::optional<letter<schema::SessionInfo>>> infos;
  bool more = false;
  std::string next;
  std::size_t open = 0;
  std::optional<error> failure; ///< a session that is there could not be shown
  listed done;

  void arrived() {
    if (--open > 0)
      return;
    if (failure)
      return done(tl::unexpected<error>(*failure));
    std::erase_if(infos, [](const auto& info) { return !info; });
    done(letter<schema::SessionList>::make([&](schema::SessionList::Builder b) {
      auto sessions = b.initSessions(static_cast<unsigned>(infos.size()));
      for (unsigned i = 0; i < infos.size(); ++i)
        sessions.setWithCaveats(i, infos[i]->read());
      b.setHasMore(more);
      if (more)
        b.setNext(text_view(next));
    }));
  }
};

void directory_shell::list(schema::ListRequest::Reader request, listed done) {
  const std::string tenant = text_of(request.getTenant());
  const auto limit = std::clamp<std::size_t>(request.getLimit(), 1, limits_.list);
  constexpr std::size_t heads_at_once = 256;

  // One more than the page holds tells whether there is another page.
  std::vector<journal_head> found;
  session_id after(text_of(request.getAfter()));
  bool more = false;
  for (std::size_t looked = 0; found.size() <= limit;) {
    const auto heads = records().list(after, heads_at_once);
    if (!heads)
      return done(fail(heads));
    for (const auto& head : *heads) {
      after = head.session;
      if (head.tenant.value == tenant)
        found.push_back(head);
      if (found.size() > limit)
        break;
    }
    looked += heads->size();
    if (heads->size() < heads_at_once)
      break;
    if (looked >= limits_.list_scan) {
      more = true; // what was not looked at
      break;
    }
  }
  auto state = std::make_shared<page>();
  state->more = more;
  state->next = after.value;
  if (found.size() > limit) {
    found.pop_back();
    state->more = true;
    state->next = found.back().session.value;
  }
  state->infos.resize(found.size());
  state->open = found.size() + 1;
  state->done = std::move(done);
  for (std::size_t i = 0; i < found.size(); ++i)
    show(found[i], [state, i](result<letter<schema::SessionInfo>> info) {
      // One that was erased meanwhile is left out.
      if (info)
        state->infos[i] = std::move(*info);
      else if (info.error().code != errc::not_found)
        state->failure = info.error();
      state->arrived();
    });
  state->arrived();
}

void directory_shell::show(const journal_head& head, const informed& done) {
  const auto tell = [this, done](const result<session_actor>& session) {
    if (session)
      ask_info(*session, done);
    else
      done(fail(session));
  };
  if (entries_.contains(head.session))
    return locate({head.session, head.tenant.value, 0}, tell);
  auto owner = owners_.of(head, now());
  if (owner.where == ownership::place::here)
    // Revived to be looked at only, so it is among the first to go.
    return tell(revive(head, now() - limits_.idle_after.count()));
  // Of one that is at rest the journal says all.
  if (owner.where == ownership::place::there && head.running)
    return ask_owner(head, owner.directory, done);
  look(head, done);
}

void directory_shell::ask_info(const session_actor& session, const informed& done) {
  self_->request(session, limits_.request_timeout, info_atom::value)
    .then([done](const letter<schema::SessionInfo>& info) { done(info); },
      [done](const caf::error& why) { done(tl::unexpected<error>(from_caf_error(why))); });
}

void directory_shell::ask_owner(
  const journal_head& head, const directory_actor& owner, const informed& done) {
  if (passing_ >= limits_.passing)
    return look(head, done);
  ++passing_;
  const auto ask = letter<schema::LocateRequest>::make([&](schema::LocateRequest::Builder b) {
    b.setSession(text_view(head.session.value));
    b.setTenant(text_view(head.tenant.value));
    b.setHops(1);
  });
  // A node that is lost meanwhile does not keep the list back.
  const auto instead = [this, head, done](const result<letter<schema::SessionInfo>>& info) {
    if (info)
      done(*info);
    else
      look(head, done);
  };
  self_->request(owner, limits_.request_timeout, ask)
    .then(
      [this, instead](const session_actor& session) {
        --passing_;
        ask_info(session, instead);
      },
      [this, instead](const caf::error& why) {
        --passing_;
        instead(tl::unexpected<error>(from_caf_error(why)));
      });
}

/// Shows what the journal has, without claiming it.
void directory_shell::look(const journal_head& head, const informed& done) {
  if (viewers_ >= limits_.live)
    return done(fail(errc::overloaded, "too many sessions are looked at"));
  ++viewers_;
  session_start start;
  start.look_only = true;
  const auto viewer = spawn_session(self_->system(), head.session, config_, start);
  ask_info(viewer, [this, viewer, done](const result<letter<schema::SessionInfo>>& info) {
    --viewers_;
    self_->send(viewer, stop_atom::value);
    done(info);
  });
}

} // namespace godwit::detail
