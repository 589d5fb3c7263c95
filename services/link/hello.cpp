#include "services/link/hello.hpp"

#include "messages/text.hpp"

#include <algorithm>
#include <cstdlib>

namespace godwit::link {

namespace {

constexpr std::size_t max_models = 64;
constexpr std::size_t max_text = 255;

std::string version(const hello& of) {
  return std::to_string(of.major) + "." + std::to_string(of.minor);
}

/// The two names in an order that does not depend on who asks.
std::string both(
  const hello& one, const hello& other, const std::string& one_has, const std::string& other_has) {
  const auto first = one.node.value + " has " + one_has;
  const auto second = other.node.value + " has " + other_has;
  return one.node < other.node ? first + ", " + second : second + ", " + first;
}

} // namespace

bool valid_node_name(std::string_view name) {
  return !name.empty() && name.size() <= max_node_name && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-'
           || c == '_';
  });
}

letter<schema::Hello> to_letter(const hello& what) {
  return letter<schema::Hello>::make([&](schema::Hello::Builder b) {
    b.setProtocolMajor(what.major);
    b.setProtocolMinor(what.minor);
    b.setNode(text_view(what.node.value));
    b.setIncarnation(what.incarnation);
    b.setSession(what.session);
    b.setSeen(what.seen);
    b.setSoftware(text_view(what.software));
    b.setHashMode(text_view(what.hash_mode));
    auto models = b.initModels(static_cast<unsigned>(what.models.size()));
    unsigned i = 0;
    for (const auto& [model, fingerprint] : what.models) {
      models[i].setModel(text_view(model));
      models[i++].setFingerprint(text_view(fingerprint));
    }
  });
}

result<hello> from_letter(const letter<schema::Hello>& mail) {
  const auto from = mail.read();
  hello out{.major = from.getProtocolMajor(),
    .minor = from.getProtocolMinor(),
    .node = node_name(text_of(from.getNode())),
    .incarnation = from.getIncarnation(),
    .session = from.getSession(),
    .seen = from.getSeen(),
    .software = text_of(from.getSoftware()),
    .hash_mode = text_of(from.getHashMode()),
    .models = {}};
  if (!valid_node_name(out.node.value))
    return fail(errc::corrupt, "a node calls itself by a name that is none");
  if (out.session == 0 || out.incarnation == 0)
    return fail(errc::corrupt, "a hello has no numbers");
  if (out.software.size() > max_text || out.hash_mode.size() > max_text
      || from.getModels().size() > max_models)
    return fail(errc::corrupt, "a hello is longer than any node's");
  for (const auto each : from.getModels()) {
    auto model = text_of(each.getModel());
    auto fingerprint = text_of(each.getFingerprint());
    if (model.size() > max_text || fingerprint.size() > max_text)
      return fail(errc::corrupt, "a hello is longer than any node's");
    out.models.insert_or_assign(std::move(model), std::move(fingerprint));
  }
  return out;
}

std::optional<std::string> incompatibility(const hello& one, const hello& other) {
  if (one.major != other.major || std::abs(int{one.minor} - int{other.minor}) > 1)
    return "their protocols are too far apart: " + both(one, other, version(one), version(other))
           + "; nodes work together up to one minor version apart";
  if (one.hash_mode != other.hash_mode)
    return "they name cached blocks in different ways: " + both(one, other, one.hash_mode, other.hash_mode);
  for (const auto& [model, fingerprint] : one.models) {
    const auto found = other.models.find(model);
    if (found != other.models.end() && found->second != fingerprint)
      return "their files or kernels of the model " + model
             + " differ: " + both(one, other, fingerprint, found->second);
  }
  return std::nullopt;
}

letter<schema::Failure> to_letter(const error& failure) {
  return letter<schema::Failure>::make([&](schema::Failure::Builder b) {
    b.setMessage(text_view(failure.message));
    b.setParam(text_view(failure.param));
    b.setReason(text_view(failure.reason));
  });
}

error from_letter(const letter<schema::Failure>& mail, std::uint8_t code) {
  const auto from = mail.read();
  auto known = static_cast<errc>(code);
  if (to_string(known) == "unknown")
    known = errc::internal;
  return {known, text_of(from.getMessage()), text_of(from.getParam()), text_of(from.getReason())};
}

} // namespace godwit::link
