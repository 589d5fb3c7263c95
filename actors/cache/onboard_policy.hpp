#pragma once

#include <cstdint>
#include <optional>

namespace godwit {

/// When blocks of the lower tiers are brought to the device.
enum class onboarding : std::uint8_t {
  measured, ///< when it is expected to take less time than computing them
  always,   ///< whatever it takes; for tests
  halved,   ///< the same, while the first half of what the cold tier has is computed; for tests
};

/// Decides whether bringing blocks back beats computing them, by the rates that were measured. Until prompts
/// were computed on this machine and its disk was read, it does. Times are in seconds.
///
/// Bringing and computing can go on at the same time: the first blocks of what the cold tier has are computed
/// while those behind them are read, as many as let both end together. Computing costs others, reading does
/// not; so that is done only where a second of computing saves a good part of one.
class onboard_policy {
 public:
  /// @param doubles_at tokens after which a token costs twice what the first one does
  /// @param block_bytes of one block: for what is assumed of a tier that was never read
  onboard_policy(onboarding mode, std::uint32_t doubles_at, std::uint64_t block_bytes);

  // What was measured.
  void host_took(std::uint32_t blocks, double seconds);
  void disk_took(std::uint32_t blocks, double seconds);
  /// @param work tokens, each counted as work_of() says
  void prefill_took(double work, double seconds);

  struct choice {
    std::uint32_t host = 0;
    std::uint32_t gap = 0;  ///< behind those, to be computed while what stands behind them is read
    std::uint32_t disk = 0; ///< behind those; 0 unless all of the host's are taken
    double seconds = 0;     ///< expected
    double compute = 0;     ///< expected of computing all of them instead; 0: not known
  };

  /// @param depth blocks before the first of these
  /// @param host that host memory has
  /// @param disk that the cold tier has behind those
  /// @param wait until the loading can begin
  choice choose(std::uint32_t depth, std::uint32_t host, std::uint32_t disk, double wait) const;
  /// Expected of reading so many.
  double reading(std::uint32_t host, std::uint32_t disk) const {
    return host * host_block_ + disk * disk_block_;
  }

  /// Tokens [first, first + tokens) in units of the very first one: each also reads all before it.
  double work_of(std::uint64_t first, std::uint64_t tokens) const;

 private:
  double compute(std::uint32_t depth, std::uint32_t blocks) const;
  choice overlapped(std::uint32_t depth, std::uint32_t host, std::uint32_t disk, double wait) const;

  onboarding mode_;
  double doubles_at_;
  double host_block_; ///< seconds
  double disk_block_;
  bool disk_known_ = false;    ///< measured, not assumed
  std::optional<double> work_; ///< seconds for a unit
};

} // namespace godwit
