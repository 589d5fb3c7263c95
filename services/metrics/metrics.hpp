#pragma once

#include "messages/letter.hpp"
#include "messages/schemas/status.capnp.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace godwit {

enum class metric_kind {
  total, ///< a counter: only grows
  level, ///< a gauge
};

/// All figures that one process shows to Prometheus. Any thread may call anything.
class metrics {
 public:
  using seconds = std::chrono::duration<double>;

  metrics();
  ~metrics();
  metrics(const metrics&) = delete;
  metrics& operator=(const metrics&) = delete;

  /// The text exposition format, version 0.0.4.
  std::string text() const;

  /// An HTTP answer. Path and method are put into the classes of route_label.hpp before they become labels.
  void http_answer(std::string_view method, std::string_view path, int status, seconds took);

  /// From a request for tokens to its first token.
  void first_token(seconds took);
  /// Between two tokens of one stream.
  void between_tokens(seconds took);

  /// One group commit of the journal.
  /// @param waited from the arrival of its oldest request until it was durable
  /// @param write of that, writing and syncing
  void commit(std::size_t records, seconds waited, seconds write);

  /// A figure that is read whenever the text is made. `read` may be called on any thread, must not block, and
  /// must stay valid as long as this object lives.
  /// @param name as Prometheus wants it: base units, counters end in _total
  void watch(std::string name, metric_kind kind, std::string help, std::function<double()> read);

  /// A value of a figure that stands for several things.
  struct labelled {
    std::vector<std::pair<std::string, std::string>> labels; ///< names and values
    double value = 0;
  };
  /// The same for a figure with labels. Only the first thousand values are shown.
  void watch_each(
    std::string name, metric_kind kind, std::string help, std::function<std::vector<labelled>()> read);

  /// What the actors of this node said of themselves; replaces what they said before.
  void actors(const letter<schema::NodeStatus>& status);

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

} // namespace godwit
