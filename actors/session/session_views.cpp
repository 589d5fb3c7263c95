#include "actors/session/session_views.hpp"

#include "actors/session/session_object.hpp"
#include "messages/text.hpp"

#include <nlohmann/json.hpp>

namespace godwit {

namespace {

using json = nlohmann::ordered_json;

const char* status(const session_machine& machine, const session_kv* kv) {
  if (machine.closed())
    return "closed";
  if (machine.running() != 0)
    return "running";
  return kv != nullptr && kv->suspended ? "suspended" : "idle";
}

/// The tokens that the session holds on the device. The cache knows full blocks only; a running turn has the
/// rest of the last one too.
std::uint64_t held_on_device(const session_machine& machine, const session_kv* kv) {
  const auto* running = machine.find(machine.running());
  const bool runs = running != nullptr && running->prompted;
  const std::uint64_t length = machine.tokens().size();
  if (kv == nullptr)
    return runs ? length : 0;
  constexpr std::uint64_t block = 16;
  return runs && kv->device + block > length ? length : kv->device;
}

} // namespace

letter<schema::SessionInfo> session_info(
  const session_machine& machine, sequence_number oldest, const session_kv* kv) {
  return letter<schema::SessionInfo>::make([&](schema::SessionInfo::Builder b) {
    b.setId(machine.id().value);
    b.setStatus(status(machine, kv));
    b.setSettings(machine.settings());
    b.setOwnerNode(machine.order().node());
    b.setOwnerEpoch(machine.order().epoch());
    b.setTurns(static_cast<std::uint32_t>(machine.turns().size()));
    auto usage = machine.usage();
    if (const auto* running = machine.find(machine.running()))
      usage += running->usage;
    write_usage(usage, b.initUsage());
    b.setKvDevice(held_on_device(machine, kv));
    if (kv != nullptr) {
      b.setKvHost(kv->host);
      b.setKvDisk(kv->disk);
    }
    b.setJournalSequence(machine.sequence());
    b.setCreatedAt(machine.created_at() / 1000);
    b.setExpiresAt(machine.expires_at() / 1000);
    if (!machine.parent().empty()) {
      b.setForkedFrom(machine.parent());
      b.setForkedAt(event_ids(session_id(machine.parent())).text({machine.forked_at(), event_place::end}));
    }
    if (oldest != 0)
      b.setOldestEvent(machine.ids().text({oldest, 0}));
    b.setQueued(static_cast<std::uint32_t>(machine.order().waiting().size()));
  });
}

letter<schema::Transcript> session_transcript(const session_machine& machine) {
  auto messages = conversation_messages(machine, {});
  messages.pop_back();
  const auto* running = machine.find(machine.running());
  if (running != nullptr && running->prompted && running->answer.empty())
    messages.pop_back();
  if (running != nullptr && !running->prompted)
    messages.push_back({"user", running->message});
  for (const auto turn : machine.order().waiting())
    messages.push_back({"user", machine.find(turn)->message});
  return letter<schema::Transcript>::make([&](schema::Transcript::Builder b) {
    auto out = b.initMessages(static_cast<unsigned>(messages.size()));
    for (unsigned i = 0; i < messages.size(); ++i) {
      out[i].setRole(text_view(messages[i].role));
      out[i].setContent(text_view(messages[i].content));
    }
    b.setRunning(running != nullptr);
  });
}

std::vector<chat_message> conversation_messages(const session_machine& machine, const std::string& next) {
  std::vector<chat_message> messages;
  const auto settings = machine.settings();
  if (settings.getHasSystem())
    messages.push_back({"system", text_of(settings.getSystem())});
  for (const auto number : machine.conversation()) {
    const auto* turn = machine.find(number);
    messages.push_back({"user", turn->message});
    messages.push_back({"assistant", turn->answer});
  }
  messages.push_back({"user", next});
  return messages;
}

prompt_task next_prompt(const session_machine& machine, const std::string& next) {
  prompt_task task;
  task.messages = conversation_messages(machine, next);
  if (machine.conversation().empty() || !machine.tokens_are_ours())
    return task;
  // All but the last answer and the new message.
  task.before = task.messages.size() - 2;
  task.prompt_length = machine.prompt_length();
  task.answer.assign(machine.tokens().begin() + machine.prompt_length(), machine.tokens().end());
  return task;
}

session_event session_snapshot(const session_machine& machine, sequence_number oldest) {
  const auto info = session_info(machine, oldest);
  auto session = session_object(info.read());
  session.erase("kv"); // the cache knows it, and only a question to it would tell
  const auto transcript = session_transcript(machine);
  auto messages = json::array();
  for (const auto message : transcript.read().getMessages())
    messages.push_back({{"role", text_of(message.getRole())}, {"content", text_of(message.getContent())}});
  const auto place = machine.order().last_event();
  const json data = {{"position", machine.ids().text(place)}, {"session", std::move(session)},
    {"running", machine.running() == 0 ? json() : json(machine.running())},
    {"transcript", std::move(messages)}};
  return {place, "snapshot", data.dump(-1, ' ', false, json::error_handler_t::replace), 0, false};
}

} // namespace godwit
