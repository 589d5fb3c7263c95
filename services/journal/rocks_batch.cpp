#include "services/journal/rocks_batch.hpp"

#include "actors/session/journal_rules.hpp"

namespace godwit {

result<journal_head> rocks_batch::add(const write_request& request) {
  using enum write_request::change;
  if (request.what == nothing)
    return journal_head();
  auto before = head(request.session);
  if (!before)
    return fail(before);
  if (request.what == open)
    return before->has_value() ? session_exists() : open_session(request);
  if (!before->has_value())
    return no_such_session();
  if (request.what == append)
    return append_to(std::move(**before), request);
  if (request.what == claim)
    return claim_from(std::move(**before), request);
  return erase_session(**before);
}

result<journal_head> rocks_batch::erase_damaged(const session_id& session) {
  journal_head gone;
  gone.session = session;
  return erase_session(gone);
}

result<std::optional<journal_head>> rocks_batch::head(const session_id& session) const {
  if (const auto place = heads_.find(session); place != heads_.end())
    return place->second;
  return store_.head(session);
}

result<journal_head> rocks_batch::put(journal_head head, const write_request& request) {
  for (const auto& record : request.records)
    store_.put(batch_, head.session, ++head.sequence, head.epoch, record);
  store_.put(batch_, head);
  heads_[head.session] = head;
  return head;
}

result<journal_head> rocks_batch::open_session(const write_request& request) {
  journal_head head;
  head.session = request.session;
  head.tenant = request.tenant;
  head.owner = request.owner;
  head.epoch = 1;
  head.running = request.running;
  return put(std::move(head), request);
}

result<journal_head> rocks_batch::append_to(journal_head head, const write_request& request) {
  const append_request fence{request.session, request.expected, request.epoch, {}, false};
  if (auto good = check_fence(head, fence); !good)
    return fail(good);
  head.running = request.running;
  return put(std::move(head), request);
}

result<journal_head> rocks_batch::claim_from(journal_head head, const write_request& request) {
  if (auto good = check_claim(head, request.epoch); !good)
    return fail(good);
  ++head.epoch;
  head.owner = request.owner;
  return put(std::move(head), request);
}

result<journal_head> rocks_batch::erase_session(const journal_head& head) {
  store_.erase(batch_, head.session);
  heads_[head.session] = std::nullopt;
  return head;
}

} // namespace godwit
