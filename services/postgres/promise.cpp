#include "services/postgres/promise.hpp"

namespace godwit::postgres {

namespace {

std::string standbys_of(const server_settings& server) {
  auto out = " (synchronous_standby_names is \"" + server.synchronous_standby_names + "\"; ";
  if (server.hidden > 0)
    return out + std::to_string(server.standbys)
           + " standbys are connected, whose state this role may not see)";
  out += std::to_string(server.synchronous) + " of " + std::to_string(server.standbys)
         + " connected standbys count)";
  return server.synchronous > 0 ? out : out + "; nothing is acknowledged until one of them is there";
}

} // namespace

result<std::string> promise_of(const server_settings& server, bool allow_unsafe) {
  const bool unsafe = server.fsync != "on" || server.synchronous_commit == "off";
  if (unsafe && !allow_unsafe)
    return fail(
      errc::unsupported, std::string("the database would acknowledge records that a crash takes away: ")
                           + (server.fsync != "on" ? "fsync" : "synchronous_commit")
                           + " is off; turn it on, or set journal_allow_unsafe to run without that promise");
  if (unsafe)
    return std::string("acknowledged records may be lost when the database crashes, as allowed");
  const auto& commit = server.synchronous_commit;
  if (server.synchronous_standby_names.empty() || commit == "local")
    return std::string("an acknowledged record survives a crash of the database, not the loss of its disk");
  if (commit == "remote_write")
    return "an acknowledged record survives the loss of any one server, but not if the standby's machine "
           "loses power as well"
           + standbys_of(server);
  return "an acknowledged record survives the loss of any one server, provided that the most advanced "
         "standby "
         "is promoted"
         + standbys_of(server);
}

} // namespace godwit::postgres
