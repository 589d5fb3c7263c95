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
  std::vector<session_id> found;
  session_id after(text_of(request.getAfter()));
  bool more = false;
  for (std::size_t looked = 0; found.size() <= limit;) {
    const auto heads = records().list(after, heads_at_once);
    if (!heads)
      return done(fail(heads));
    for (const auto& head : *heads) {
      after = head.session;
      if (head.tenant.value == tenant)
        found.push_back(head.session);
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
    state->next = found.back().value;
  }
  state->infos.resize(found.size());
  state->open = found.size() + 1;
  state->done = std::move(done);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto arrived = [state, i](result<letter<schema::SessionInfo>> info) {
      // One that was erased meanwhile is left out.
      if (info)
        state->infos[i] = std::move(*info);
      else if (info.error().code != errc::not_found)
        state->failure = info.error();
      state->arrived();
    };
    const auto show = [this, arrived](const result<session_actor>& session) {
      if (!session)
        return arrived(fail(session));
      self_->request(*session, limits_.request_timeout, info_atom::value)
        .then([arrived](const letter<schema::SessionInfo>& info) { arrived(info); },
          [arrived](const caf::error& why) { arrived(tl::unexpected<error>(from_caf_error(why))); });
    };
    if (entries_.contains(found[i]))
      locate(found[i], tenant, show);
    else // Revived to be looked at only, so it is among the first to go.
      show(revive(found[i], tenant, now() - limits_.idle_after.count()));
  }
  state->arrived();
}

} // namespace godwit::detail
