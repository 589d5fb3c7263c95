#pragma once

#include "kernels/ops/cpu/packed.hpp"
#include "kernels/threads/team.hpp"
#include "messages/result.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::ops::cpu {

/// Packed weights that are kept in a file, mapped and shared by all processes that use it, so that loading
/// does not pack them again. One file serves all targets: the layout of packed weights is the same for all.
///
/// The file, in the byte order of x86 and ARM:
///   header     magic "GDWTPACK", u32 version, u32 entries, 32 characters that name the model, u64 its own
///   size,
///              u64 XXH3 of the entries
///   entries    128-bit XXH3 of a tensor's name, u64 format, outputs, inputs, offset and size of its weights,
///              128-bit XXH3 of them
///   weights    each at a multiple of 64 bytes
///
/// Everything is checked before it is used, the weights by their digest: a file that is damaged, of another
/// model or of another version is as good as none, and `why` says what it is.
class packed_file {
 public:
  /// @param model names what the weights belong to: 32 characters, such as a model's fingerprint
  packed_file(std::filesystem::path path, std::string_view model, team& threads);
  ~packed_file();
  packed_file(const packed_file&) = delete;
  packed_file& operator=(const packed_file&) = delete;

  /// Empty if the file can be used or there is none; else what is wrong with it.
  const std::string& why() const { return why_; }
  bool usable() const { return !entries_.empty(); }

  /// The packed weights of a tensor, which stay valid as long as this; nothing if there are none.
  std::span<const std::byte> find(
    std::string_view tensor, weight_format format, std::size_t outputs, std::size_t inputs) const;

  /// Notes packed weights to be written; they must stay valid until then.
  void add(std::string_view tensor, weight_format format, std::size_t outputs, std::size_t inputs,
    std::span<const std::byte> packed);

  /// Writes what was added in place of the file, at once: a reader sees the old one or the new one. Does
  /// nothing if nothing was added. @returns `io`, `permission`, `resource_exhausted`
  result<void> write(team& threads);

 private:
  struct digest {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    bool operator==(const digest&) const = default;
  };
  struct entry {
    digest name;
    std::uint64_t format = 0;
    std::uint64_t outputs = 0;
    std::uint64_t inputs = 0;
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    digest weights;
  };
  struct header;

  static digest digest_of(std::span<const std::byte> bytes);
  static digest digest_of(std::string_view text);
  /// @returns what is wrong, or nothing
  std::string read(team& threads);
  std::string check_entries(std::span<const entry> found, team& threads) const;
  void unmap();

  std::filesystem::path path_;
  std::string model_;
  std::string why_;
  std::span<const std::byte> mapped_;
  std::vector<entry> entries_;
  std::vector<entry> added_;
  std::vector<std::span<const std::byte>> added_weights_;
};

} // namespace godwit::ops::cpu
