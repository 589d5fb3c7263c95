#include "services/link/zap.hpp"

#include <cstring>

namespace godwit::link {

namespace {

// Places of a request's frames.
constexpr std::size_t version = 0;
constexpr std::size_t request_id = 1;
constexpr std::size_t address = 3;
constexpr std::size_t mechanism = 5;
constexpr std::size_t credentials = 6;

constexpr std::string_view protocol = "1.0";

bool from_loopback(std::string_view peer) {
  return peer.starts_with("127.") || peer == "::1" || peer.starts_with("::ffff:127.");
}

} // namespace

zap_verdict judge(std::span<const std::string_view> request, const allow_list* allowed) {
  if (request.size() <= mechanism || request[version] != protocol)
    return {};
  if (allowed == nullptr)
    return {request[mechanism] == "NULL" && from_loopback(request[address]), "plain"};
  if (request[mechanism] != "CURVE" || request.size() != credentials + 1)
    return {};
  public_key key;
  if (request[credentials].size() != key.bytes.size())
    return {};
  std::memcpy(key.bytes.data(), request[credentials].data(), key.bytes.size());
  return allowed->find(key) == nullptr ? zap_verdict{} : zap_verdict{true, to_z85(key)};
}

std::array<std::string, 6> zap_reply(std::span<const std::string_view> request, const zap_verdict& verdict) {
  return {std::string(protocol),
    std::string(request.size() > request_id ? request[request_id] : std::string_view{}),
    verdict.accepted ? "200" : "400", verdict.accepted ? "OK" : "this key is not on the list",
    verdict.accepted ? verdict.user : std::string{}, std::string{}};
}

} // namespace godwit::link
