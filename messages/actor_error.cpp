#include "messages/actor_error.hpp"

#include <caf/atom.hpp>
#include <caf/error.hpp>
#include <caf/exit_reason.hpp>
#include <caf/message.hpp>
#include <caf/sec.hpp>

namespace godwit {

namespace {

constexpr auto category = caf::atom("godwit");

error from_system_error(caf::sec code) {
  switch (code) {
  case caf::sec::request_timeout:
    return {errc::deadline, "an internal request took too long", {}, {}};
  case caf::sec::request_receiver_down:
    return {errc::peer_lost, "the part that was asked has stopped", {}, {}};
  default:
    return {errc::internal, "an internal request failed: " + caf::to_string(code), {}, {}};
  }
}

} // namespace

caf::error to_caf_error(const error& failure) {
  return caf::error(static_cast<std::uint8_t>(failure.code), category,
    caf::make_message(failure.message, failure.param, failure.reason));
}

error from_caf_error(const caf::error& failure) {
  // CAF reads an empty error's parts without looking whether it has any.
  if (!failure)
    return {errc::internal, "a failure without a cause", {}, {}};
  if (failure.category() == category) {
    error out;
    out.code = static_cast<errc>(failure.code());
    const auto& context = failure.context();
    if (context.match_elements<std::string, std::string, std::string>()) {
      out.message = context.get_as<std::string>(0);
      out.param = context.get_as<std::string>(1);
      out.reason = context.get_as<std::string>(2);
    }
    return out;
  }
  if (failure.category() == caf::atom("system"))
    return from_system_error(static_cast<caf::sec>(failure.code()));
  if (failure.category() == caf::atom("exit"))
    return {errc::peer_lost, "the part that was asked has stopped", {}, {}};
  return {errc::internal, "an internal request failed", {}, {}};
}

} // namespace godwit
