// The command line `godwit`: flags are declared here, and nothing else. CLI11 stays in this file: it is slow
// to compile.

#include "tools/godwit/bench_commands.hpp"
#include "tools/godwit/cache_commands.hpp"
#include "tools/godwit/chat.hpp"
#include "tools/godwit/key_commands.hpp"
#include "tools/godwit/link_bench_command.hpp"
#include "tools/godwit/model_commands.hpp"
#include "tools/godwit/node_commands.hpp"
#include "tools/godwit/session_commands.hpp"

#include <CLI/CLI.hpp>

#include <fmt/core.h>

#include <cstdio>
#include <functional>
#include <iostream>
#include <iterator>
#include <optional>

namespace {

using namespace godwit;
using namespace godwit::cli;

/// Everything a command line can say. Each command reads its part.
struct words {
  settings how;
  bench_words bench;
  journal_words journal;
  cold_words cold;
  std::optional<std::string> tenant;
  link_words link;
  new_session wanted;
  std::string id;
  std::string text;
  std::string key;
  std::string at;
  std::string node;
  std::uint32_t limit = 20;
  std::uint32_t seconds = 3600;
  std::uint32_t letters = 100;
  std::uint32_t trace_seconds = 10;
  bool no_wait = false;
  bool follow = false;
  std::string file;
  bool special = false;
  bool decode = false;
  bool prompt_only = false;
  std::string folder = ".";
};

int with_node(const words& said, const std::function<int(client&)>& command) {
  auto node = client::connect(said.how.url);
  return node ? command(**node) : report(node.error(), said.how.json);
}

void add_session_flags(CLI::App& app, new_session& wanted) {
  app.add_option("--model", wanted.model, "Model, as the node names it");
  app.add_option("--system", wanted.system, "System message");
  app.add_option("--temperature", wanted.temperature, "0 is greedy");
  app.add_option("--top-p", wanted.top_p);
  app.add_option("--top-k", wanted.top_k);
  app.add_option("--min-p", wanted.min_p);
  app.add_option("--repeat-penalty", wanted.repeat_penalty);
  app.add_option("--seed", wanted.seed, "The same seed and messages give the same answers");
  app.add_option("--max-tokens", wanted.max_tokens, "Most tokens of one answer");
  app.add_option("--stop", wanted.stop, "A text that ends an answer; may be given several times");
}

std::string standard_input() {
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

/// Text of a message: the argument, or standard input for "-".
std::string message_text(const std::string& argument) {
  return argument != "-" ? argument : standard_input();
}

void declare_sessions(CLI::App& app, words& said, int& exit) {
  auto* session = app.add_subcommand("session", "Open, drive and look at sessions");
  session->require_subcommand(1);
  const auto run = [&said, &exit](CLI::App* command, std::function<int(client&)> action) {
    command->callback([&said, &exit, action = std::move(action)] { exit = with_node(said, action); });
  };
  const auto named = [&said, session](const char* name, const char* what) {
    auto* command = session->add_subcommand(name, what);
    command->add_option("id", said.id, "Session id")->required();
    return command;
  };

  auto* create = session->add_subcommand("create", "Open a session; prints its id");
  add_session_flags(*create, said.wanted);
  create->add_option("--ttl", said.wanted.ttl_s, "Seconds after which the session is closed");
  create->add_option("--on-busy", said.wanted.on_busy, "What a message does while a turn runs")
    ->check(CLI::IsMember({"queue", "reject", "interrupt"}));
  create->add_option("--metadata", said.wanted.metadata, "A JSON object of your own");
  run(create, [&said](client& node) { return session_create(node, said.how, said.wanted); });

  auto* list = session->add_subcommand("list", "List sessions");
  list->add_option("--limit", said.limit, "Most sessions to show");
  list->add_option("--after", said.at, "Session id to start behind");
  run(list, [&said](client& node) { return session_list(node, said.how, said.limit, said.at); });

  run(named("show", "Show one session"),
    [&said](client& node) { return session_show(node, said.how, said.id); });

  auto* send = named("send", "Send a message and print the answer as it comes");
  send->add_option("text", said.text, "The message; - reads standard input")->required();
  send->add_option("--key", said.key, "Idempotency key: sending it again does not run the turn twice");
  send->add_flag("--no-wait", said.no_wait, "Return once the message is in the journal");
  run(send, [&said](client& node) {
    return session_send(node, said.how, said.id, message_text(said.text), said.key, !said.no_wait);
  });

  auto* events = named("events", "Print a session's events");
  events->add_option("--after", said.at, "Event id to start behind");
  events->add_flag("--follow,-f", said.follow, "Go on with events to come");
  run(
    events, [&said](client& node) { return session_events(node, said.how, said.id, said.at, said.follow); });

  run(named("transcript", "Print the messages so far"),
    [&said](client& node) { return session_transcript(node, said.how, said.id); });

  auto* fork = named("fork", "Copy a session; prints the new id");
  fork->add_option("--at", said.at, "Event id or turn to copy up to");
  run(fork, [&said](client& node) { return session_fork(node, said.how, said.id, said.at); });

  run(named("cancel", "Stop the running turn"),
    [&said](client& node) { return session_act(node, said.how, said.id, "cancel"); });
  run(named("suspend", "Move a session's cache out of memory"),
    [&said](client& node) { return session_act(node, said.how, said.id, "suspend"); });
  auto* pin = named("pin", "Keep what the device's cache has of a session; prints tokens and end");
  pin->add_option("--ttl", said.seconds, "Seconds that it is kept, up to a day")->capture_default_str();
  run(pin, [&said](client& node) { return session_pin(node, said.how, said.id, said.seconds); });
  run(named("unpin", "End a session's pin"),
    [&said](client& node) { return session_unpin(node, said.how, said.id); });
  auto* migrate = named("migrate", "Move a session to another node");
  migrate->add_option("--node", said.node, "Where to");
  run(migrate, [&said](client& node) { return session_migrate(node, said.how, said.id, said.node); });
  run(named("delete", "Close a session and erase it"),
    [&said](client& node) { return session_delete(node, said.how, said.id); });
}

void declare_nodes(CLI::App& app, words& said, int& exit) {
  app.add_subcommand("nodes", "List the nodes")->callback([&said, &exit] {
    exit = with_node(said, [&said](client& node) { return show_nodes(node, said.how); });
  });
  auto* actors = app.add_subcommand("actors", "List the actors with their gauges");
  actors->add_option("--node", said.node, "Only those of this node");
  auto* trace =
    actors->add_subcommand("trace", "Show the letters of an actor or a session: types, sizes and times");
  trace->add_option("actor", said.id, "The actor, as it is listed, or a session")->required();
  trace->add_option("--node", said.node, "On which node; without it the one that is asked");
  trace->add_option("--letters", said.letters, "End after so many")->capture_default_str();
  trace->add_option("--seconds", said.trace_seconds, "End after so long")->capture_default_str();
  trace->callback([&said, &exit] {
    exit = with_node(said, [&said](client& node) {
      return trace_actor(node, said.how, said.id, said.node, said.letters, said.trace_seconds);
    });
  });
  actors->callback([&said, &exit, trace] {
    if (trace->parsed())
      return;
    exit = with_node(said, [&said](client& node) { return show_actors(node, said.how, said.node); });
  });
  auto* drain = app.add_subcommand("drain", "Let a node finish what it runs, then end");
  drain->add_option("node", said.node, "The node's name")->required();
  drain->callback([&said, &exit] {
    exit = with_node(said, [&said](client& node) { return drain_node(node, said.how, said.node); });
  });
}

void declare_chat(CLI::App& app, words& said, int& exit) {
  auto* command = app.add_subcommand("chat", "Talk to the model");
  command->add_option("--session", said.id, "Go on with this session instead of opening one");
  add_session_flags(*command, said.wanted);
  command->callback([&said, &exit] {
    exit = with_node(said, [&said](client& node) { return chat(node, said.how, said.id, said.wanted); });
  });
}

void declare_models(CLI::App& app, words& said, int& exit) {
  auto* model = app.add_subcommand("model", "Look into model files");
  model->require_subcommand(1);
  auto* info = model->add_subcommand("info", "Shape, tensors, tokenizer, and what would compute it here");
  info->add_option("file", said.file, "GGUF file")->required();
  info->callback([&said, &exit] { exit = show_model(said.how, said.file); });

  auto* words = app.add_subcommand("tokenize", "Turn standard input into token ids, or back");
  words->add_option("--model", said.file, "GGUF file")->required();
  auto* special = words->add_flag("--special", said.special, "Recognise control tokens in the text");
  words->add_flag("--decode", said.decode, "Read ids (a JSON array, or numbers), print their bytes")
    ->excludes(special);
  words->callback([&said, &exit] {
    exit = said.decode ? detokenize(said.how, said.file, standard_input())
                       : tokenize(said.how, said.file, standard_input(), said.special);
  });

  auto* chat = app.add_subcommand("render", "Turn a JSON array of messages on standard input into a prompt");
  chat->add_option("--model", said.file, "GGUF file")->required();
  chat->add_flag(
    "--no-answer", said.prompt_only, "End behind the last message, not with what begins an answer");
  chat->callback([&said, &exit] { exit = render(said.how, said.file, standard_input(), !said.prompt_only); });
}

void declare_cache(CLI::App& app, words& said, int& exit) {
  auto* cache = app.add_subcommand("cache", "Look after a cache on disk while no node uses it");
  cache->require_subcommand(1);
  const auto declare = [&](const char* name, const char* what) {
    auto* command = cache->add_subcommand(name, what);
    command->add_option("folder", said.file, "Data directory of a node, or the cache's own folder")
      ->required();
    return command;
  };
  declare("stats", "What is in it, by tenant and by model")->callback([&said, &exit] {
    exit = cache_stats(said.how, said.file);
  });
  declare("verify", "Read every block; delete those that do not check")->callback([&said, &exit] {
    exit = cache_verify(said.how, said.file);
  });
  auto* clear = declare("clear", "Delete all blocks");
  clear->add_option("--tenant", said.tenant, "Only those of this tenant");
  clear->callback([&said, &exit] { exit = cache_clear(said.how, said.file, said.tenant); });
}

void declare_keys(CLI::App& app, words& said, int& exit) {
  auto* keys = app.add_subcommand("keys", "Keys by which nodes know each other");
  keys->require_subcommand(1);
  auto* make = keys->add_subcommand("new", "Make a node's keys; existing ones are never overwritten");
  make->add_option("--name", said.node, "The node's name")->required();
  make->add_option("--out", said.folder, "Folder to write NAME.secret and NAME.public into")
    ->capture_default_str();
  make->callback([&said, &exit] { exit = keys_new(said.how, said.node, said.folder); });
  auto* show = keys->add_subcommand("show", "Print public keys");
  show->add_option("file", said.file, "NAME.secret, NAME.public, or a list of public keys")->required();
  show->callback([&said, &exit] { exit = keys_show(said.how, said.file); });
}

void declare_benches(CLI::App& app, words& said, int& exit) {
  auto* bench = app.add_subcommand("bench", "Measure this machine; rates are medians");
  bench->require_subcommand(1);
  const auto declare = [&](const char* name, const char* what,
                         int (*run)(const settings&, const bench_words&)) {
    auto* command = bench->add_subcommand(name, what);
    if (run != &bench_machine) {
      command->add_option("--model", said.bench.model, "GGUF file")->required();
    }
    command->add_option("--threads", said.bench.threads, "0: one for each core")->check(CLI::Range(0, 1024));
    command->add_option("--ops", said.bench.ops, "Implementation; `godwit model info` lists them");
    command->add_option("--kv-type", said.bench.kv_type, "What keys and values are kept in")
      ->check(CLI::IsMember({"fp16", "bf16", "int8", "fp32"}));
    command->callback([&said, &exit, run] { exit = run(said.how, said.bench); });
    return command;
  };
  const auto rounds = [&said](CLI::App* command) {
    command->add_option("--rounds", said.bench.rounds, "Rounds that count")->check(CLI::Range(1, 1000));
  };
  auto* prefill = declare("prefill", "Speed of prompts", bench_prefill);
  prefill->add_option("--tokens", said.bench.tokens, "Lengths, with commas")->delimiter(',');
  rounds(prefill);
  auto* decode = declare("decode", "Speed of decoding", bench_decode);
  decode->add_option("--context", said.bench.contexts, "Tokens behind each stream, with commas")
    ->delimiter(',');
  decode->add_option("--batch,--streams", said.bench.batches, "Streams side by side, with commas")
    ->delimiter(',');
  rounds(decode);
  auto* verify = declare("verify", "Time to verify a block of tokens in one pass", bench_verify);
  verify->add_option("--context", said.bench.contexts, "Tokens before the block, with commas")
    ->delimiter(',');
  verify->add_option("--tokens", said.bench.blocks, "Sizes of blocks, with commas")->delimiter(',');
  rounds(verify);
  auto* products = declare("products", "Time of nothing but the matrix products of a step", bench_products);
  products->add_option("--rows", said.bench.sizes, "Rows of steps, with commas")->delimiter(',');
  rounds(products);
  declare("machine", "What the machine could do at most", bench_machine);
  auto* cache = declare("cache", "The prefix cache: index, pages, and what a hit saves", bench_cache);
  cache->add_option("--tokens", said.bench.cached, "Length of the prompt that is found");
  cache
    ->add_option("--folder", said.bench.folder,
      "On the disk of the lowest tier; a folder of its own is made and removed")
    ->check(CLI::ExistingDirectory)
    ->capture_default_str();
  rounds(cache);
  auto* cold = bench->add_subcommand("cold", "The cache on disk, beside a plain file");
  cold->add_option("--folder", said.cold.folder, "Where to write; a folder of its own is made and removed")
    ->check(CLI::ExistingDirectory)
    ->capture_default_str();
  cold->add_option("--model", said.cold.model, "Write the pages of this GGUF file's model, not noise");
  cold->add_option("--megabytes", said.cold.megabytes, "Of pages, in a round")
    ->check(CLI::Range(1, 1'000'000))
    ->capture_default_str();
  cold->add_option("--blocks", said.cold.batch, "Of a commit")
    ->check(CLI::Range(1, 4096))
    ->capture_default_str();
  cold->add_option("--rounds", said.cold.rounds, "Store and file take turns; medians count")
    ->check(CLI::Range(1, 1000))
    ->capture_default_str();
  cold->add_flag("--zstd", said.cold.compress, "Compress the pages");
  cold->callback([&said, &exit] { exit = bench_cold(said.how, said.cold); });
  auto* sampling = declare("sampling", "Time to choose the tokens of a step", bench_sampling);
  sampling->add_option("--rows", said.bench.rows, "Rows of the step");
  rounds(sampling);
  auto* nll = declare("nll", "Mean negative log-likelihood of a text", bench_nll);
  nll->add_option("--text", said.bench.text, "File with the text")->required();

  auto* journal = bench->add_subcommand("journal", "Durable records a second, beside a plain file's");
  journal
    ->add_option("--folder", said.journal.folder, "Where to write; a folder of its own is made and removed")
    ->check(CLI::ExistingDirectory)
    ->capture_default_str();
  journal->add_option("--url", said.journal.url,
    "Measure the journal in this PostgreSQL database, in a schema godwit_bench; the file stays on --folder");
  journal->add_option("--sessions", said.journal.sessions, "Sessions that append side by side, with commas")
    ->delimiter(',')
    ->check(CLI::Range(1, 100'000));
  journal->add_option("--bytes", said.journal.record_bytes, "Of a record")
    ->check(CLI::Range(1, 512 * 1024))
    ->capture_default_str();
  journal->add_option("--rounds", said.journal.rounds, "Journal and file take turns; medians count")
    ->check(CLI::Range(1, 1000))
    ->capture_default_str();
  journal->add_option("--milliseconds", said.journal.round_ms, "Of a round")
    ->check(CLI::Range(1, 600'000))
    ->capture_default_str();
  journal->callback([&said, &exit] { exit = bench_journal(said.how, said.journal); });

  auto* link = bench->add_subcommand("link", "Letters between two processes, beside bare ZeroMQ");
  link->add_flag("--plain", said.link.plain, "Without keys");
  link->add_option("--rounds", said.link.rounds, "The two take turns; medians count")->capture_default_str();
  link->add_option("--requests", said.link.requests, "Of a round")->capture_default_str();
  link->add_option("--letters", said.link.letters, "Of a round, one way")->capture_default_str();
  link->add_option("--pages", said.link.pages, "Of a round, in bulk")->capture_default_str();
  link->add_option("--page-bytes", said.link.page_bytes)->capture_default_str();
  link->add_option("--bytes", said.link.letter_bytes, "Of a letter")->capture_default_str();
  link->callback([&said, &exit] { exit = bench_link(said.how, said.link); });
}

} // namespace

int main(int argc, char** argv) {
  words said;
  int exit = exit_ok;
  CLI::App app{"Talks to a Godwit mesh, and looks into models and tokenizers without one.", "godwit"};
  app.set_version_flag("--version", GODWIT_VERSION);
  app.add_option("--url", said.how.url, "Node to talk to")->envname("GODWIT_URL")->capture_default_str();
  app.add_flag("--json", said.how.json, "Machine-readable output");
  app.require_subcommand(1);
  // --url and --json may also stand behind the command.
  app.fallthrough();
  declare_chat(app, said, exit);
  declare_sessions(app, said, exit);
  declare_nodes(app, said, exit);
  declare_models(app, said, exit);
  declare_cache(app, said, exit);
  declare_keys(app, said, exit);
  declare_benches(app, said, exit);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError& failure) {
    // "A subcommand is required" does not help who has misspelt one.
    const auto unknown = app.remaining(true);
    app.exit(unknown.empty() ? static_cast<const CLI::ParseError&>(failure) : CLI::ExtrasError(unknown));
    return exit_usage;
  } catch (const CLI::ParseError& failure) {
    return app.exit(failure) == 0 ? exit_ok : exit_usage;
  } catch (const std::exception& failure) {
    return report({errc::internal, failure.what(), {}, {}}, said.how.json);
  }
  // A full disk shows itself only here; whoever reads the output must not take half of it for all.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    report({errc::internal, "standard output could not be written", {}, {}}, said.how.json);
    return exit == exit_ok ? exit_failed : exit;
  }
  return exit;
}
