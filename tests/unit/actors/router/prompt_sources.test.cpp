#include "actors/router/prompt_sources.hpp"

#include "messages/letter.hpp"
#include "messages/schemas/generation.capnp.h"

#include <catch2/catch.hpp>

using namespace godwit;

namespace {

/// A prompt whose tokens begin with `first` and count up, with `changed` at one place.
letter<schema::GenerateRequest> prompt(unsigned tokens, std::uint32_t first, unsigned changed = ~0U) {
  return letter<schema::GenerateRequest>::make([&](schema::GenerateRequest::Builder b) {
    auto list = b.initTokens(tokens);
    for (unsigned i = 0; i < tokens; ++i)
      list.set(i, i == changed ? 1'000'000 : first + i);
  });
}

std::string chosen(prompt_sources& from, const letter<schema::GenerateRequest>& what) {
  const auto choice = from.choose("t", what.read().getTokens());
  REQUIRE(choice);
  return choice->name;
}

} // namespace

TEST_CASE("without a node there is no choice, and the one that is there is it") {
  prompt_sources sources;
  CHECK(sources.empty());
  CHECK_FALSE(sources.choose("t", prompt(600, 0).read().getTokens()));
  sources.put("a");
  sources.put("a");
  CHECK(sources.size() == 1);
  CHECK(chosen(sources, prompt(600, 0)) == "a");
  sources.remove("a");
  sources.remove("a");
  CHECK_FALSE(sources.choose("t", prompt(600, 0).read().getTokens()));
}

TEST_CASE("the node with the least to compute is chosen, until it is done") {
  prompt_sources sources;
  sources.put("a");
  sources.put("b");
  const auto long_one = sources.choose("t", prompt(5000, 0).read().getTokens());
  CHECK(long_one->name == "a");
  CHECK(long_one->tokens == 5000);
  CHECK(sources.queued("a") == 5000);
  // Ten of 400 fit beside it on the other node.
  for (std::uint32_t i = 1; i <= 10; ++i)
    CHECK(chosen(sources, prompt(400, 10'000 * i)) == "b");
  CHECK(sources.queued("b") == 4000);
  sources.done(*long_one);
  CHECK(sources.queued("a") == 0);
  CHECK(chosen(sources, prompt(400, 900'000)) == "a");
}

TEST_CASE("equal nodes take turns") {
  prompt_sources sources;
  sources.put("a");
  sources.put("b");
  for (std::uint32_t i = 0; i < 6; ++i) {
    const auto choice = sources.choose("t", prompt(600, 10'000 * i).read().getTokens());
    CHECK(choice->name == (i % 2 == 0 ? "a" : "b"));
    sources.done(*choice);
  }
}

TEST_CASE("a text goes where its beginning was computed, for what is left of it") {
  prompt_sources sources;
  sources.put("a");
  sources.put("b");
  const auto first = sources.choose("t", prompt(1000, 0).read().getTokens());
  sources.done(*first);
  const auto next = sources.choose("t", prompt(2000, 0).read().getTokens());
  CHECK(next->name == first->name);
  // Three segments of 256 tokens are known.
  CHECK(next->tokens == 2000 - 768);
  sources.done(*next);
  // It differs in the second segment: the first one is known.
  const auto branch = sources.choose("t", prompt(1000, 0, 300).read().getTokens());
  CHECK(branch->name == first->name);
  CHECK(branch->tokens == 1000 - 256);
  sources.done(*branch);
  // Another tenant's is another text.
  const auto other = sources.choose("u", prompt(1000, 0).read().getTokens());
  CHECK(other->name != first->name);
  CHECK(other->tokens == 1000);
}

TEST_CASE("a beginning that is known does not make a busy node free") {
  prompt_sources sources;
  sources.put("a");
  sources.put("b");
  const auto first = sources.choose("t", prompt(1000, 0).read().getTokens());
  sources.done(*first);
  const auto busy = sources.choose("t", prompt(8000, 0).read().getTokens());
  CHECK(busy->name == first->name);
  CHECK(chosen(sources, prompt(1000, 0)) != first->name);
}

TEST_CASE("a node that is gone is not chosen for what it knew, and counts as fresh when it is back") {
  prompt_sources sources;
  sources.put("a");
  const auto first = sources.choose("t", prompt(1000, 0).read().getTokens());
  sources.put("b");
  sources.remove("a");
  CHECK(chosen(sources, prompt(1000, 0)) == "b");
  sources.done(*first);
  sources.put("a");
  CHECK(sources.queued("a") == 0);
  sources.done(*first);
  CHECK(sources.queued("a") == 0);
}

TEST_CASE("so many beginnings are remembered, the latest ones") {
  prompt_sources sources(4);
  sources.put("a");
  sources.done(*sources.choose("t", prompt(1024, 0).read().getTokens()));
  CHECK(sources.choose("t", prompt(1024, 0).read().getTokens())->tokens == 0);
  sources.done(*sources.choose("t", prompt(512, 50'000).read().getTokens()));
  // Its two shortest beginnings were forgotten, not the two longest.
  CHECK(sources.choose("t", prompt(1024, 0).read().getTokens())->tokens == 0);
  sources.done(*sources.choose("t", prompt(1024, 90'000).read().getTokens()));
  CHECK(sources.choose("t", prompt(512, 50'000).read().getTokens())->tokens == 512);
}
