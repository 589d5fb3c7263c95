#include "actors/tokenizer/pre_tokenizer.hpp"

#include "messages/check.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>
#include <string>

namespace godwit {

namespace {

/// Replaces "\s" and "\S". PCRE2's contain U+180E, which is no white space since Unicode 6.3 and was none to
/// the tokenizers that the vocabularies come from.
std::string with_unicode_spaces(std::string_view pattern) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    out.push_back(pattern[i]);
    if (pattern[i] != '\\')
      continue;
    ++i; // the patterns do not end in a backslash
    if (pattern[i] == 's')
      out += "p{WSpace}";
    else if (pattern[i] == 'S')
      out += "P{WSpace}";
    else
      out.push_back(pattern[i]);
  }
  return out;
}

PCRE2_SPTR units(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

} // namespace

/// A compiled pattern. Not changed by matching; only match data and context, which each call makes, are.
class pre_tokenizer::pattern {
 public:
  explicit pattern(std::string_view text) {
    const auto adapted = with_unicode_spaces(text);
    int number = 0;
    PCRE2_SIZE place = 0;
    code_ = pcre2_compile(units(adapted), adapted.size(), PCRE2_UTF | PCRE2_UCP, &number, &place, nullptr);
    GODWIT_CHECK(code_ != nullptr);
    // Refused where memory may not be made executable; matching interprets the pattern then, with equal
    // results.
    pcre2_jit_compile(code_, PCRE2_JIT_COMPLETE);
  }
  ~pattern() { pcre2_code_free(code_); }
  pattern(const pattern&) = delete;
  pattern& operator=(const pattern&) = delete;

  void split(const std::vector<std::string_view>& pieces, std::vector<std::string_view>& out) const {
    const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> found(
      pcre2_match_data_create(1, nullptr), pcre2_match_data_free);
    const std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> bounds(
      pcre2_match_context_create(nullptr), pcre2_match_context_free);
    if (!found || !bounds)
      throw std::bad_alloc();
    for (const auto piece : pieces)
      split(piece, *found, *bounds, out);
  }

 private:
  void split(std::string_view piece, pcre2_match_data& found, pcre2_match_context& bounds,
    std::vector<std::string_view>& out) const {
    // All repeats in our patterns are of single characters, so a match backtracks over each character of the
    // piece a few times at most and needs no depth. A limit beyond that is a net under a mistake of ours.
    constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();
    pcre2_set_match_limit(&bounds, static_cast<std::uint32_t>(std::min(most, 100'000 + 64 * piece.size())));
    std::size_t done = 0;
    while (done < piece.size()) {
      const int groups =
        pcre2_match(code_, units(piece), piece.size(), done, PCRE2_NO_UTF_CHECK, &found, &bounds);
      if (groups == PCRE2_ERROR_NOMATCH)
        break;
      if (groups == PCRE2_ERROR_NOMEMORY)
        throw std::bad_alloc();
      GODWIT_CHECK(groups > 0);
      const auto* range = pcre2_get_ovector_pointer(&found);
      const auto from = range[0];
      const auto to = range[1];
      GODWIT_CHECK(from >= done && to > from && to <= piece.size());
      if (from > done)
        out.push_back(piece.substr(done, from - done));
      out.push_back(piece.substr(from, to - from));
      done = to;
    }
    if (done < piece.size())
      out.push_back(piece.substr(done));
  }

  pcre2_code* code_ = nullptr;
};

pre_tokenizer::pre_tokenizer(const pre_tokenizer_rules& rules) {
  for (const auto text : rules.patterns)
    patterns_.push_back(std::make_unique<pattern>(text));
}

pre_tokenizer::~pre_tokenizer() = default;

std::vector<std::string_view> pre_tokenizer::split(std::string_view text) const {
  std::vector<std::string_view> pieces;
  if (!text.empty())
    pieces.push_back(text);
  for (const auto& each : patterns_) {
    std::vector<std::string_view> finer;
    finer.reserve(pieces.size());
    each->split(pieces, finer);
    pieces = std::move(finer);
  }
  return pieces;
}

} // namespace godwit
