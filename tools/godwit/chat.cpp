#include "tools/godwit/chat.hpp"

#include "tools/godwit/interrupt.hpp"
#include "tools/godwit/line_input.hpp"

#include <fmt/core.h>

#include <cstdio>

namespace godwit::cli {

using nlohmann::ordered_json;

namespace {

constexpr const char* help =
  "/session   the session's id\n"
  "/show      the session as it is\n"
  "/fork      go on in a copy of this session\n"
  "/quit      leave; the session stays (Ctrl-D too)\n"
  "Ctrl-C cancels the answer that is being written; twice, if the node does not answer, ends the chat.\n";

struct conversation {
  client& node;
  const settings& how;
  std::string id;
  interrupt_watch& watch;
  bool failed = false; ///< something that was asked for did not happen

  std::string path(const char* rest) const { return "/v1/sessions/" + path_part(id) + rest; }

  void complain(const error& why) {
    report(why, how.json);
    failed = true;
  }

  /// Sends one message and prints the answer. A failure of the turn is printed; the chat goes on.
  void say(const std::string& text) {
    watch.on_interrupt([url = how.url, cancel = path("/cancel")] {
      // A client of its own: the other one is busy with the stream. The stream ends by itself with
      // `turn.cancelled`.
      if (auto other = client::connect(url))
        (void)(*other)->call("POST", cancel, ordered_json::object());
    });
    std::optional<error> failure;
    const auto done = node.stream(
      "POST", path("/messages"), {{"content", text}, {"stream", true}}, {}, [&](const sse_event& event) {
        print_turn_event(event, how);
        if (event.type == "turn.cancelled" && !how.json)
          fmt::print(" [cancelled]");
        if (auto why = turn_failure(event))
          failure = std::move(why);
        return true;
      });
    watch.on_interrupt({});
    if (!how.json)
      fmt::print("\n");
    if (!done)
      complain(done.error());
    else if (failure)
      complain(*failure);
  }

  /// @returns false when the chat is over
  bool command(const std::string& line) {
    if (line == "/quit" || line == "/exit")
      return false;
    if (line == "/session") {
      fmt::print("{}\n", id);
    } else if (line == "/show") {
      session_show(node, how, id);
    } else if (line == "/fork") {
      const auto copy = node.call("POST", path("/fork"), ordered_json::object());
      if (copy) {
        id = plain(member(copy->body, "id"));
        fmt::print("now in {}\n", id);
      } else {
        complain(copy.error());
      }
    } else {
      fmt::print("{}", help);
    }
    return true;
  }
};

} // namespace

int chat(client& node, const settings& how, const std::string& id, const new_session& wanted) {
  std::string session = id;
  if (session.empty()) {
    const auto body = wanted.body();
    if (!body)
      return report(body.error(), how.json);
    const auto opened = node.call("POST", "/v1/sessions", *body);
    if (!opened)
      return report(opened.error(), how.json);
    session = plain(member(opened->body, "id"));
  } else if (const auto known = node.call("GET", "/v1/sessions/" + path_part(session)); !known) {
    return report(known.error(), how.json);
  }

  interrupt_watch watch;
  line_input input(default_history());
  if (input.interactive())
    fmt::print("Session {}. /help lists commands, Ctrl-D leaves.\n", session);
  conversation talk{node, how, session, watch};
  while (const auto line = input.next("> ")) {
    if (line->empty())
      continue;
    if (!line->starts_with('/'))
      talk.say(*line);
    else if (!talk.command(*line))
      break;
    std::fflush(stdout);
  }
  if (input.interactive())
    fmt::print("\n");
  // A person has seen it; a script only sees how this ends.
  return talk.failed && !input.interactive() ? exit_failed : exit_ok;
}

} // namespace godwit::cli
