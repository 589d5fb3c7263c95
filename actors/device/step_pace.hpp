#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace godwit {

/// How many prompt tokens a step with running streams may take, so that no stream waits longer for its next
/// token than was asked for. It learns from the steps that were: a step without prompts tells what the
/// streams cost, one with prompts what a prompt token costs on top. Both are moving averages, since longer
/// contexts cost more.
///
/// What it says changes when tokens come, never which.
class step_pace {
 public:
  using duration = std::chrono::nanoseconds;

  /// @param target of the time between two tokens of a stream; 0 is none
  explicit step_pace(duration target) : target_(target) {}

  /// @param least that prompts take in any case, so that they get on
  /// @param most  that they may take however fast the machine is
  std::uint32_t prompt_tokens(std::uint32_t least, std::uint32_t most) const;

  /// What a step of `streams` decoded rows and `prompt` prompt tokens took.
  void learn(std::uint32_t streams, std::uint32_t prompt, duration took);

 private:
  duration target_;
  std::optional<double> streams_ns_; ///< of a step without prompts
  std::optional<double> token_ns_;   ///< of one prompt token beside streams
};

} // namespace godwit
