#pragma once

#include "kernels/gguf/file.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace godwit {

/// Reads the metadata of one architecture, whose keys begin with its name: `number("block_count", …)` reads
/// "llama.block_count". Remembers the first failure and answers with the least possible number from then on,
/// so that who reads a whole model asks for a failure once, at the end. Knows which keys nobody asked for:
/// one that a graph does not know would change its results in silence.
class metadata {
 public:
  metadata(const gguf::file& file, std::string_view architecture) : file_{file}, prefix_{architecture} {
    prefix_ += '.';
  }

  bool has(std::string_view name) const { return file_.find(key(name)) != nullptr; }

  /// A number between two bounds.
  std::uint32_t number(std::string_view name, std::uint32_t least, std::uint32_t most);
  /// The same; `otherwise` if the file does not have the key.
  std::uint32_t number_or(
    std::string_view name, std::uint32_t least, std::uint32_t most, std::uint32_t otherwise);

  /// A finite number from `least` to `most`.
  double real(std::string_view name, double least, double most);
  double real_or(std::string_view name, double least, double most, double otherwise);

  std::string text_or(std::string_view name, std::string_view otherwise);

  /// Keys that say nothing about what is computed.
  void ignore(std::string_view name) { asked_.emplace(key(name)); }

  /// Keeps a failure, unless there is one already.
  void refuse(errc code, std::string message);

  /// The first failure; else `unsupported` naming a key of the architecture that nobody asked for and that is
  /// not switched off (zero, false).
  result<void> check() const;

  const gguf::file& file() const { return file_; }
  std::string key(std::string_view name) const { return prefix_ + std::string{name}; }

 private:
  const gguf::file& file_;
  std::string prefix_;
  std::set<std::string, std::less<>> asked_;
  std::optional<error> failure_;
};

/// A number for people, without zeros at its end.
std::string short_text(double number);

} // namespace godwit
