#include "services/link/frame_reader.hpp"

#include <memory>
#include <utility>

namespace godwit::link::detail {

namespace {

/// Keys whose text is remembered.
constexpr std::size_t most_users = 1024;

} // namespace

bool frame_reader::read(zmq::socket_t& from, bool more) {
  frames_.clear();
  bool fits = true;
  while (more) {
    zmq::message_t frame;
    if (!from.recv(frame, zmq::recv_flags::dontwait))
      break;
    more = frame.more();
    if (frames_.size() < most_)
      frames_.push_back(std::move(frame));
    else
      fits = false;
  }
  if (!fits)
    link_counters::add(counters_.malformed);
  return fits;
}

bool frame_reader::read_behind(zmq::socket_t& from, zmq::message_t first) {
  const bool fits = read(from, first.more());
  frames_.insert(frames_.begin(), std::move(first));
  return fits;
}

std::span<const received_frame> frame_reader::views() {
  views_.clear();
  for (auto& frame : frames_) {
    if (views_.empty()) {
      views_.push_back({{static_cast<const std::byte*>(frame.data()), frame.size()}, nullptr});
      continue;
    }
    auto kept = std::make_shared<zmq::message_t>(std::move(frame));
    const std::span bytes(static_cast<const std::byte*>(kept->data()), kept->size());
    views_.push_back({bytes, std::move(kept)});
  }
  return views_;
}

std::string frame_reader::owner(const allow_list& allowed) {
  if (frames_.empty())
    return {};
  const char* const user = zmq_msg_gets(frames_.front().handle(), "User-Id");
  if (user == nullptr)
    return {};
  auto known = users_.find(user);
  if (known == users_.end()) {
    const auto key = from_z85(user);
    if (!key)
      return {};
    if (users_.size() >= most_users)
      users_.clear();
    known = users_.emplace(user, *key).first;
  }
  const auto* const node = allowed.find(known->second);
  return node == nullptr ? std::string{} : node->value;
}

} // namespace godwit::link::detail
