#include "actors/generation/answer_text.hpp"

#include <catch2/catch.hpp>

#include <random>
#include <string>
#include <string_view>
#include <vector>

using namespace godwit;

namespace {

/// Tokens of any bytes; the last one is a control token.
class listed_tokens : public token_text {
 public:
  explicit listed_tokens(std::vector<std::string> names) : names_(std::move(names)) {
    names_.push_back("<control>");
  }
  token_id size() const override { return static_cast<token_id>(names_.size()); }
  std::string_view bytes(token_id id) const override { return names_.at(id); }
  bool is_control(token_id id) const override { return id + 1 == names_.size(); }
  bool is_end(token_id) const override { return false; }

 private:
  std::vector<std::string> names_;
};

/// What a client sees of `tokens`, one text for each push and one for the end.
std::vector<std::string> shown(const std::vector<std::string>& tokens, std::vector<std::string> stops = {}) {
  answer_text text(std::make_shared<listed_tokens>(tokens), std::move(stops));
  std::vector<std::string> out;
  for (token_id id = 0; id < tokens.size(); ++id)
    out.push_back(text.push(id));
  out.push_back(text.finish());
  return out;
}

using texts = std::vector<std::string>;

} // namespace

TEST_CASE("text is shown as it comes where no stop string is near") {
  CHECK(shown({"Hell", "o", " world"}) == texts{"Hell", "o", " world", ""});
  CHECK(shown({"Hell", "o"}, {"END"}) == texts{"Hell", "o", ""});
}

TEST_CASE("a character is shown once it is whole") {
  CHECK(shown({"a\xF0\x9F", "\x99", "\x82!"}) == texts{"a", "", "\U0001F642!", ""});
  CHECK(shown({"\xC3", "\xA9\xC3", "\xA9"}) == texts{"", "\u00E9", "\u00E9", ""});
}

TEST_CASE("bytes that are no character become U+FFFD, as the Unicode standard's example has it") {
  // Table 3-8 of Unicode: 61 F1 80 80 E1 80 C2 62 80 63 80 BF 64 has the replacements of maximal subparts
  // below.
  const std::string bytes = "a\xF1\x80\x80\xE1\x80\xC2"
                            "b\x80"
                            "c\x80\xBF"
                            "d";
  const std::string expected = "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd";
  CHECK(shown({bytes})[0] == expected);
  texts single;
  for (const char byte : bytes)
    single.emplace_back(1, byte);
  std::string all;
  for (const auto& part : shown(single))
    all += part;
  CHECK(all == expected);
}

TEST_CASE("a character that stays incomplete becomes one U+FFFD at the end") {
  CHECK(shown({"a\xE2\x82"}) == texts{"a", "\uFFFD"});
  CHECK(shown({"\xF0\x9F", "\x99"}) == texts{"", "", "\uFFFD"});
}

TEST_CASE("control tokens are left out, even within a character") {
  const auto tokens = std::make_shared<listed_tokens>(texts{"\xE2", "\x82\xAC"});
  answer_text text(tokens, {});
  CHECK(text.push(0).empty());
  CHECK(text.push(2).empty());
  CHECK(text.push(1) == "\u20AC");
  CHECK(text.finish().empty());
}

TEST_CASE("only what may become a stop string is held back") {
  CHECK(shown({"one ", "ST", "A", "STO", "Px"}, {"STOP"}) == texts{"one ", "", "STA", "", "", ""});
  CHECK(shown({"one S", "T"}, {"STOP"}) == texts{"one ", "", "ST"});
  CHECK(shown({"aab", "aac"}, {"aabaab"}) == texts{"", "aabaac", ""});
  CHECK(shown({"x\u20AC", "\xE2\x82"}, {"\u20AC\u20AC"}) == texts{"x", "", "\u20AC\uFFFD"});
}

TEST_CASE("text ends before a stop string and stays ended") {
  answer_text text(std::make_shared<listed_tokens>(texts{"ab", "cEN", "Dx", "more"}), {"END", "\n"});
  CHECK(text.push(0) == "ab");
  CHECK(text.push(1) == "c");
  CHECK_FALSE(text.stopped());
  CHECK(text.push(2).empty());
  CHECK(text.stopped());
  CHECK(text.push(3).empty());
  CHECK(text.finish().empty());
}

TEST_CASE("the stop string that is complete first counts, of those that end together the longest") {
  CHECK(shown({"abcd"}, {"abcd", "c"}) == texts{"ab", ""});
  CHECK(shown({"a", "b", "c", "d"}, {"abcd", "c"}) == texts{"", "", "ab", "", ""});
  CHECK(shown({"xbcd"}, {"d", "bcd", "cd"}) == texts{"x", ""});
}

TEST_CASE("a stop string may be met by the replacement of a broken end") {
  CHECK(shown({"a\xE2\x82"}, {"\uFFFD"}) == texts{"a", ""});
}

TEST_CASE("stop strings that are empty or not UTF-8 are ignored") {
  CHECK(shown({"\u00E9", "b"}, {"", "\xA9"}) == texts{"\u00E9", "b", ""});
}

namespace {

/// Characters of random texts and stop strings: few, so that stops begin, fail and overlap often.
const std::vector<std::string> alphabet{"a", "b", "\u00E9", "\u20AC", "\uFFFD"};

/// All of a text with maximal subparts replaced. Every broken byte here is \xFF, or an end of "\u20AC" cut
/// off.
std::string decoded(const std::string& bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size();) {
    bool whole = false;
    for (const auto& character : alphabet)
      if (bytes.compare(i, character.size(), character) == 0) {
        out += character;
        i += character.size();
        whole = true;
        break;
      }
    if (whole)
      continue;
    out += "\uFFFD";
    i += bytes.compare(i, 2, "\xE2\x82") == 0 || bytes.compare(i, 2, "\xEF\xBF") == 0 ? 2 : 1;
  }
  return out;
}

/// The definition: cut before the first stop string that is complete.
std::string cut(const std::string& text, const texts& stops) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const auto& stop : stops)
      if (text.substr(0, end).ends_with(stop))
        longest = std::max(longest, stop.size());
    if (longest > 0)
      return text.substr(0, end - longest);
  }
  return text;
}

} // namespace

TEST_CASE(
  "the whole text is that of the definition, however it is cut into tokens, and never shown too early") {
  std::mt19937 random(3);
  const auto pick = [&](const texts& from) { return from[random() % from.size()]; };
  for (int round = 0; round < 4000; ++round) {
    texts stops;
    for (auto left = random() % 4; left > 0; --left) {
      stops.emplace_back();
      for (auto size = random() % 4 + 1; size > 0; --size)
        stops.back() += pick(alphabet);
    }
    std::string bytes;
    for (auto left = random() % 24; left > 0; --left)
      bytes += random() % 8 == 0 ? pick({"\xFF", "\xE2\x82", "\xE2"}) : pick(alphabet);
    texts tokens;
    for (std::size_t from = 0; from < bytes.size();) {
      const auto size = random() % 5;
      tokens.push_back(bytes.substr(from, size));
      from += size;
    }

    const auto expected = cut(decoded(bytes), stops);
    std::string all;
    std::string given;
    answer_text text(std::make_shared<listed_tokens>(tokens), stops);
    for (token_id id = 0; id < tokens.size(); ++id) {
      all += text.push(id);
      given += tokens[id];
      REQUIRE(expected.starts_with(all));
      if (text.stopped())
        continue;
      // No more is held back than the longest that may become a stop, or a character that is not whole.
      std::size_t most = 3;
      for (const auto& stop : stops)
        most = std::max(most, stop.size() + 2);
      REQUIRE(cut(decoded(given), stops).size() <= all.size() + most);
    }
    all += text.finish();
    REQUIRE(all == expected);
  }
}
