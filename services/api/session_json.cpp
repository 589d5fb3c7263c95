#include "services/api/session_json.hpp"

#include "actors/session/session_object.hpp"
#include "kernels/memory/kv_layout.hpp"
#include "services/api/text_of.hpp"

#include <nlohmann/json.hpp>

namespace godwit {

namespace {

using nlohmann::ordered_json;

std::string dump(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

} // namespace

std::string session_json(schema::SessionInfo::Reader info) {
  return dump(session_object(info));
}

std::string erased_session_json(schema::SessionInfo::Reader info) {
  auto out = session_object(info);
  out["deleted"] = true;
  return dump(out);
}

std::string session_list_json(schema::SessionList::Reader list) {
  auto data = ordered_json::array();
  for (const auto info : list.getSessions())
    data.push_back(session_object(info));
  return dump({{"object", "list"}, {"data", std::move(data)}, {"has_more", list.getHasMore()},
    {"next", list.getHasMore() ? ordered_json(text_of(list.getNext())) : ordered_json()}});
}

std::string transcript_json(schema::Transcript::Reader transcript) {
  auto messages = ordered_json::array();
  for (const auto message : transcript.getMessages()) {
    ordered_json out{{"role", text_of(message.getRole())}, {"content", text_of(message.getContent())}};
    if (message.getName().size() != 0)
      out["name"] = text_of(message.getName());
    messages.push_back(std::move(out));
  }
  return dump({{"messages", std::move(messages)}, {"running", transcript.getRunning()}});
}

std::string turn_json(schema::TurnState::Reader turn) {
  return dump(
    {{"turn", turn.getTurn()}, {"status", text_of(turn.getStatus())}, {"sequence", turn.getSequence()}});
}

std::string pin_json(const session_id& session, schema::CachePinned::Reader pinned, std::int64_t expires_at) {
  return dump({{"id", session.value}, {"pinned_tokens", std::uint64_t{pinned.getBlocks()} * page_tokens},
    {"expires_at", pinned.getBlocks() == 0 ? ordered_json() : ordered_json(expires_at)}});
}

std::string accepted_json(schema::MessageAccepted::Reader accepted) {
  return dump({{"turn", accepted.getTurn()}, {"sequence", accepted.getSequence()},
    {"after", text_of(accepted.getEventBefore())}});
}

} // namespace godwit
