#include "actors/generation/answer_text.hpp"

#include "actors/text/utf8.hpp"

#include <algorithm>
#include <utility>

namespace godwit {

namespace {

/// Size of the longest end of `text` that `stop`, which is not in it, begins with.
std::size_t begun(std::string_view text, std::string_view stop) {
  for (auto size = std::min(text.size(), stop.size() - 1); size > 0; --size)
    if (text.ends_with(stop.substr(0, size)))
      return size;
  return 0;
}

} // namespace

answer_text::answer_text(std::shared_ptr<const token_text> vocabulary, std::vector<std::string> stops)
  : vocabulary_(std::move(vocabulary)), stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty() || !utf8::valid(stop); });
}

std::string answer_text::push(token_id token) {
  if (stopped_ || vocabulary_->is_control(token))
    return {};
  bytes_ += vocabulary_->bytes(token);
  decode(false);
  return take_certain(false);
}

std::string answer_text::finish() {
  if (stopped_)
    return {};
  decode(true);
  return take_certain(true);
}

/// Moves what is certain from bytes_ to held_.
void answer_text::decode(bool last) {
  std::string_view rest = bytes_;
  while (!rest.empty()) {
    const auto next = utf8::first(rest);
    if (next.cut && !last)
      break;
    held_ += next.valid ? rest.substr(0, next.size) : utf8::replacement;
    rest.remove_prefix(next.size);
  }
  bytes_.erase(0, bytes_.size() - rest.size());
}

/// Takes from held_ what no stop string can take away any more.
std::string answer_text::take_certain(bool last) {
  // Where the stop that is complete first begins, and where it ends.
  auto from = std::string::npos;
  auto to = std::string::npos;
  for (const auto& stop : stops_) {
    const auto found = held_.find(stop);
    if (found != std::string::npos && std::pair(found + stop.size(), found) < std::pair(to, from)) {
      from = found;
      to = found + stop.size();
    }
  }
  std::size_t held = 0;
  if (from != std::string::npos) {
    stopped_ = true;
    held_.resize(from);
    bytes_.clear();
  } else if (!last) {
    for (const auto& stop : stops_)
      held = std::max(held, begun(held_, stop));
  }
  auto certain = held_.substr(0, held_.size() - held);
  held_.erase(0, certain.size());
  return certain;
}

} // namespace godwit
