#pragma once

#include <chrono>
#include <string>

namespace godwit {

/// Whether a program that speaks ZeroMQ's protocol listens at an endpoint. It greets whoever connects (ZMTP
/// 3.1, RFC 37, "greeting"); a port that is only forwarded to nobody, or another program's, does not.
/// @param endpoint tcp://HOST:PORT; one that is none, or whose host has no address, is nobody's
/// @param patience for the connection and for the greeting together; resolving a name takes its own time
bool speaks_zmtp(const std::string& endpoint, std::chrono::milliseconds patience);

} // namespace godwit
