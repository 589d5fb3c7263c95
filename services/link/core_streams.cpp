// Streams of both directions: what may still be sent, and how they end.

#include "services/link/core.hpp"

#include <algorithm>
#include <utility>

namespace godwit::link {

void core::open_stream(std::string_view node, lane which, parcel what, std::uint64_t correlation,
  std::uint64_t credit, stream_sink sink, moment now) {
  const auto refused = [&sink](error why) { sink({nullptr, std::move(why), false}); };
  auto* const one = peers_.find(node);
  if (one == nullptr)
    return refused({errc::unavailable, "no node is called " + std::string(node), {}, {}});
  if (consumers_.size() >= most_.streams) {
    link_counters::add(counters_.overflows);
    return refused({errc::overloaded, "too many streams from other nodes are open", {}, {}});
  }
  if (auto posted = peers_.post(*one, which, {std::move(what), never, 0}, now); !posted)
    return refused(posted.error());
  consumers_.emplace(
    correlation, consumer{std::string(node), std::min(credit, most_.stream_credit), std::move(sink)});
  link_counters::set(counters_.streams, consumers_.size() + now_producing_);
}

void core::grant(std::uint64_t correlation, std::uint64_t items, moment now) {
  const auto found = consumers_.find(correlation);
  if (found == consumers_.end())
    return;
  items = std::min(items, most_.stream_credit - found->second.credit);
  if (items == 0)
    return;
  found->second.credit += items;
  post_control(found->second.node, frame_kind::stream_credit, correlation, items, end_cause::none, now);
}

void core::end_stream(std::uint64_t correlation, end_cause cause, moment now) {
  const auto found = consumers_.find(correlation);
  if (found == consumers_.end())
    return;
  post_control(found->second.node, frame_kind::stream_end, correlation, 1, cause, now);
  finish_stream(
    correlation, {nullptr, {error_of(cause), "the stream was ended by its consumer", {}, {}}, false});
}

void core::finish_stream(std::uint64_t correlation, const stream_event& how) {
  const auto found = consumers_.find(correlation);
  if (found == consumers_.end())
    return;
  const auto sink = std::move(found->second.sink);
  consumers_.erase(found);
  link_counters::set(counters_.streams, consumers_.size() + now_producing_);
  sink(how);
}

void core::take_item(peer& one, const incoming& mail, moment now) {
  const auto correlation = mail.header.correlation;
  const auto found = consumers_.find(correlation);
  if (found == consumers_.end() || found->second.node != one.record.name.value)
    return; // it has ended; what was on its way is dropped
  if (mail.header.kind == frame_kind::stream_end) {
    if (mail.header.code == 0 && mail.header.cause == end_cause::none)
      return finish_stream(correlation, {nullptr, {}, true});
    const auto body = letter<schema::Failure>::parse(mail.words);
    auto why = body ? from_letter(*body, mail.header.code)
                    : error{error_of(mail.header.cause), "the stream was ended by its producer", {}, {}};
    return finish_stream(correlation, {nullptr, std::move(why), false});
  }
  if (found->second.credit == 0) {
    link_counters::add(counters_.credit_broken);
    post_control(one.record.name.value, frame_kind::stream_end, correlation, 1, end_cause::overloaded, now);
    return finish_stream(correlation,
      {nullptr, {errc::corrupt, "the producer sent more than it had credit for", {}, {}}, false});
  }
  --found->second.credit;
  // A copy: the sink may end the stream.
  const auto sink = found->second.sink;
  sink({&mail, {}, false});
}

void core::serve_stream(peer& one, const incoming& mail, moment now) {
  auto& of_node = producers_[one.record.name.value];
  const served_key key{mail.header.session, mail.header.correlation};
  reply_token token{one.record.name.value, key.session, key.correlation};
  const auto credit = std::min(mail.header.source, most_.stream_credit);
  if (now_producing_ >= most_.streams) {
    link_counters::add(counters_.overflows);
    return refuse(one, key.correlation, frame_kind::stream_end,
      {errc::overloaded, "too many streams are open", {}, {}}, now);
  }
  auto shared = std::make_shared<link::stream_credit>();
  shared->items = credit;
  if (!of_node.emplace(key, producer{token, shared}).second) {
    link_counters::add(counters_.malformed);
    return;
  }
  link_counters::set(counters_.streams, consumers_.size() + ++now_producing_);
  if (upper_.on_stream(mail, token, shared))
    return;
  of_node.erase(key);
  link_counters::set(counters_.streams, consumers_.size() + --now_producing_);
  link_counters::add(counters_.dead_letters);
  refuse(one, key.correlation, frame_kind::stream_end,
    {errc::not_found, "there is nothing here that makes this stream", {}, {}}, now);
}

void core::stream_send(const reply_token& token, lane which, parcel what, bool last, moment now) {
  const auto of_node = producers_.find(token.node);
  if (of_node == producers_.end())
    return;
  const auto found = of_node->second.find({token.session, token.correlation});
  if (found == of_node->second.end())
    return;
  if (last) {
    found->second.credit->open = false;
    of_node->second.erase(found);
    link_counters::set(counters_.streams, consumers_.size() + --now_producing_);
  }
  send(token.node, which, std::move(what), never, now);
}

} // namespace godwit::link
