#include "services/link/bench.hpp"

#include "messages/actor_error.hpp"
#include "messages/catalogue.hpp"
#include "services/link/actor_exchange.hpp"
#include "services/link/bench_bare.hpp"
#include "services/link/bench_link.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace godwit::link {

namespace {

using namespace bench;

/// Lines between the two processes.
class pipes {
 public:
  pipes() {
    if (::pipe(down_) != 0 || ::pipe(up_) != 0)
      std::abort();
  }
  void be_child() {
    close(down_[1]);
    close(up_[0]);
    in_ = down_[0];
    out_ = up_[1];
  }
  void be_parent() {
    close(down_[0]);
    close(up_[1]);
    in_ = up_[0];
    out_ = down_[1];
  }
  void say(std::string line) const {
    line += '\n';
    (void)!::write(out_, line.data(), line.size());
  }
  /// @returns nothing when the other side is gone
  std::string hear() const {
    std::string line;
    char c = 0;
    while (::read(in_, &c, 1) == 1 && c != '\n')
      line += c;
    return line;
  }
  void hang_up() const { ::close(out_); }

 private:
  static void close(int descriptor) { ::close(descriptor); }
  int down_[2]{};
  int up_[2]{};
  int in_ = -1;
  int out_ = -1;
};

struct both_keys {
  std::optional<node_keys> parent;
  std::optional<node_keys> child;
};

const node_keys* pointer(const std::optional<node_keys>& keys) {
  return keys ? &*keys : nullptr;
}

/// The other process: serves until the pipe says that the first one is done.
void serve(pipes& line, const both_keys& keys) {
  const auto bare = bare_server::start(pointer(keys.child));
  bench_node node("bench-there", keys.child);
  line.say(node.endpoints());
  line.say(bare->endpoints());
  node.meet("bench-here", line.hear(), keys.parent);
  while (!line.hear().empty()) {
  }
}

double median(std::vector<double> values) {
  return quantile(values, 0.5);
}

link_rates medians(const std::vector<link_rates>& rounds) {
  link_rates out;
  for (const auto member :
    {&link_rates::request_p50_us, &link_rates::request_p99_us, &link_rates::letters_per_s,
      &link_rates::bulk_bytes_per_s, &link_rates::busy_p50_us, &link_rates::busy_p99_us}) {
    std::vector<double> values;
    for (const auto& round : rounds)
      values.push_back(round.*member);
    out.*member = median(values);
  }
  return out;
}

template <class Side>
link_rates one_round(Side& side, const link_bench_options& options, std::size_t bytes) {
  link_rates out;
  auto times = side.requests(options.requests, bytes);
  out.request_p50_us = quantile(times, 0.5);
  out.request_p99_us = quantile(times, 0.99);
  out.letters_per_s = static_cast<double>(options.letters) / side.letters(options.letters, bytes);
  const auto all = static_cast<double>(options.pages * options.page_bytes);
  out.bulk_bytes_per_s = all / side.pages(options.pages, options.page_bytes, bytes, nullptr);
  std::vector<double> busy;
  side.pages(options.pages, options.page_bytes, bytes, &busy);
  out.busy_p50_us = quantile(busy, 0.5);
  out.busy_p99_us = quantile(busy, 0.99);
  return out;
}

result<link_bench> measure(pipes& line, const both_keys& keys, const link_bench_options& options) {
  const auto there = line.hear();
  const auto bare_there = line.hear();
  if (there.empty() || bare_there.empty())
    return fail(errc::io, "the other process of the bench did not start");
  bench_node node("bench-here", keys.parent);
  line.say(node.endpoints());
  node.meet("bench-there", there, keys.child);
  if (!node.wait_for("bench-there"))
    return fail(errc::unavailable, "the two processes of the bench did not find each other");
  const auto bare =
    bare_client::connect(bare_there, pointer(keys.parent), keys.child ? &keys.child->open : nullptr);

  link_client link(node, "bench-there");
  const auto words = (options.letter_bytes + 7) / 8 * 8;
  const auto whole = link.frame_bytes(words);
  std::vector<link_rates> link_rounds;
  std::vector<link_rates> bare_rounds;
  std::vector<double> actors_p50;
  std::vector<double> actors_p99;
  std::vector<double> local;
  link.requests(200, words); // the first ones make connections
  bare->requests(200, whole);
  for (std::size_t round = 0; round < options.rounds; ++round) {
    link_rounds.push_back(one_round(link, options, words));
    bare_rounds.push_back(one_round(*bare, options, whole));
    auto far = node.actor_requests("bench-there", options.requests, words);
    actors_p50.push_back(quantile(far, 0.5));
    actors_p99.push_back(quantile(far, 0.99));
    auto near = node.actor_requests("", options.requests, words);
    local.push_back(quantile(near, 0.5));
  }
  return link_bench{
    medians(link_rounds), medians(bare_rounds), median(actors_p50), median(actors_p99), median(local)};
}

} // namespace

result<link_bench> measure_link(const link_bench_options& options) {
  if (options.rounds == 0 || options.requests == 0 || options.letters == 0 || options.pages == 0
      || options.page_bytes == 0 || options.page_bytes > (std::size_t{32} << 20) || options.letter_bytes < 48
      || options.letter_bytes > (std::size_t{1} << 19))
    return fail(errc::invalid_argument,
      "counts must be positive, a letter has 48 bytes to 512 KiB, and a page 32 MiB at most");
  both_keys keys;
  if (options.curve) {
    auto parent = make_keys(node_name("bench-here"));
    auto child = make_keys(node_name("bench-there"));
    if (!parent || !child)
      return fail(parent ? child : parent);
    keys = {*parent, *child};
  }
  pipes line;
  const auto other = ::fork();
  if (other < 0)
    return fail(errc::resource_exhausted, "the bench cannot start a second process");
  if (other == 0) {
    line.be_child();
    serve(line, keys);
    ::_exit(0);
  }
  line.be_parent();
  auto out = measure(line, keys, options);
  line.hang_up();
  int status = 0;
  ::waitpid(other, &status, 0);
  return out;
}

} // namespace godwit::link
