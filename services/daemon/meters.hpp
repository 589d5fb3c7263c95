#pragma once

#include "actors/decode/stream_observer.hpp"
#include "services/journal/metrics.hpp"
#include "services/log/log.hpp"
#include "services/metrics/metrics.hpp"

#include <memory>

namespace godwit {

/// Puts what the journal tells into histograms and the log.
class journal_meter final : public journal_observer {
 public:
  journal_meter(std::shared_ptr<metrics> figures, std::shared_ptr<logger> out)
    : figures_(std::move(figures)), out_(std::move(out)) {}

  void committed(const commit_sample& sample) override {
    figures_->commit(sample.records, sample.oldest, sample.write);
  }
  void warning(std::string_view text) override { out_->warn("journal", {{"why", text}}); }

 private:
  std::shared_ptr<metrics> figures_;
  std::shared_ptr<logger> out_;
};

/// Puts the pace of streams into histograms.
class stream_meter final : public stream_observer {
 public:
  explicit stream_meter(std::shared_ptr<metrics> figures) : figures_(std::move(figures)) {}

  void first_token(std::chrono::nanoseconds took) override { figures_->first_token(took); }
  void next_token(std::chrono::nanoseconds took) override { figures_->between_tokens(took); }

 private:
  std::shared_ptr<metrics> figures_;
};

} // namespace godwit
