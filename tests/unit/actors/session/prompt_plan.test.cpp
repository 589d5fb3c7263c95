#include "actors/session/prompt_plan.hpp"
#include "tests/support/toy_model.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

namespace {

const toy_text vocabulary;
const std::string before = toy_chat({{"user", "Hi"}});

std::string after(const std::string& answer) {
  return toy_chat({{"user", "Hi"}, {"assistant", answer}, {"user", "Go on"}});
}

prompt_plan plan(const std::vector<token_id>& answer, const std::string& now) {
  return plan_prompt(before, answer, vocabulary, now);
}

/// The tokens of a text that the vocabulary has as words, and perhaps the end token.
std::vector<token_id> tokens(const std::string& text, bool ended) {
  auto ids = vocabulary.encode(text);
  if (ended)
    ids.push_back(toy_text::end);
  return ids;
}

const std::string next = "\n<|im_start|>user\nGo on<|im_end|>\n<|im_start|>assistant\n";

} // namespace

TEST_CASE("the end token that was generated and the one that the template prints are one") {
  const auto answer = tokens("Hello the bird", true);
  const auto found = plan(answer, after("Hello the bird"));
  CHECK(found.reuse);
  CHECK(found.answer_tokens == answer.size());
  CHECK(found.rest == next);
}

TEST_CASE("behind an answer that was cut short the template's end follows") {
  const auto answer = tokens("Hello the", false);
  const auto found = plan(answer, after("Hello the"));
  CHECK(found.answer_tokens == answer.size());
  CHECK(found.rest == "<|im_end|>" + next);
}

TEST_CASE("tokens that a stop string took part of are left, those before it stay") {
  // " STOP" ended the answer, its blank belongs to the text: the token is left and the blank encoded anew.
  const auto answer = tokens("Hello the STOP", false);
  const auto found = plan(answer, after("Hello the "));
  CHECK(found.answer_tokens == answer.size() - 1);
  CHECK(found.rest == " <|im_end|>" + next);
}

TEST_CASE("half a character at the end of an answer is not gone on from") {
  auto answer = tokens("Hello", false);
  answer.push_back(0xe2);
  const auto found = plan(answer, after("Hello\uFFFD"));
  CHECK(found.answer_tokens == answer.size() - 1);
  CHECK(found.rest.starts_with("\uFFFD<|im_end|>"));
}

TEST_CASE("a template that trims the answer still goes on from the prompt") {
  const auto answer = tokens(" the bird", true);
  const auto found = plan(answer, after("the bird"));
  CHECK(found.reuse);
  CHECK(found.answer_tokens == 0);
  CHECK(found.rest.starts_with("the bird<|im_end|>"));
}

TEST_CASE("a conversation that is rendered differently is encoded as a whole") {
  CHECK(!plan(tokens("Hello", true), "<|im_start|>system\nnew" + after("Hello")).reuse);
}

TEST_CASE("a token that the vocabulary does not have ends what is kept") {
  CHECK(plan({toy_text::first_word, 1'000'000}, after(" the")).answer_tokens == 1);
}
