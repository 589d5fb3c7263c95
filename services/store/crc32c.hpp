#pragma once

#include <cstdint>
#include <string_view>

namespace godwit {

/// CRC-32C (RFC 3720, appendix B.4), which RocksDB puts behind all that it writes, by the processor's
/// instruction where there is one.
///
/// Debian builds RocksDB for every x86-64 processor, so that it computes these with tables, at a tenth of the
/// speed: more work than all else that a block of KV pages takes. A program that links this function has one
/// of RocksDB's name, too, which the dynamic linker then takes for the library's own calls. Values are the
/// same; where the linker does not do that (a static RocksDB), it is only slower.
///
/// @returns the CRC of what gave `before` (0: nothing) with `bytes` behind it
std::uint32_t crc32c(std::uint32_t before, std::string_view bytes);

/// Whether RocksDB's own calls come here in this process. Who opens a database calls it, so that this file is
/// linked.
bool crc32c_serves_rocksdb();

} // namespace godwit
