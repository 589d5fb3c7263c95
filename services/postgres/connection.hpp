#pragma once

#include "services/postgres/address.hpp"
#include "services/postgres/values.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

struct pg_conn;
struct pg_result;

namespace godwit::postgres {

using clock = std::chrono::steady_clock;

/// How long to wait: until a moment, or until somebody wants the end.
struct patience {
  clock::time_point until;
  const std::atomic<bool>* closing = nullptr; ///< may be null

  bool over() const { return clock::now() >= until || closed(); }
  bool closed() const { return closing != nullptr && closing->load(); }
};

/// A statement of a transaction.
struct statement {
  std::string text; ///< or the name of a prepared one
  bool prepared = false;
  std::vector<parameter> parameters;
};

/// What one statement returned; fields are in binary form.
class rows {
 public:
  explicit rows(pg_result* from);
  std::size_t size() const;
  /// Points into this object. @returns nothing for null and for a column that is not there
  field at(std::size_t row, std::size_t column) const;

 private:
  std::shared_ptr<pg_result> result_;
};

/// What became of a transaction.
struct outcome {
  enum class kind {
    done,    ///< committed
    refused, ///< the server said no: nothing of it is stored
    lost,    ///< the connection ended, or the server does not vouch for it: stored or not
    pending, ///< no answer yet: wait() again
  };
  kind what = kind::lost;
  std::vector<rows> results; ///< of each statement, when done
  std::string state;         ///< SQLSTATE, when refused
  std::string message;       ///< for the operator; not when done
};

/// One connection to one server. A transaction is all statements of a send(), in one message there and one
/// back (libpq's pipeline); nothing blocks longer than it is told. For one thread at a time.
class connection {
 public:
  /// @returns `io`, `deadline` or `permission` with a message for the operator
  static result<std::unique_ptr<connection>> open(
    const server_address& to, const address& all, const patience& how);

  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  /// Begins a transaction; the one before must be over.
  void send(const std::vector<statement>& statements);
  /// Also takes up preparing the names of `texts`, which stay for the connection's life.
  void prepare(const std::vector<std::pair<std::string, std::string>>& names_and_texts);

  /// Waits for the end of what was sent.
  outcome wait(const patience& how);

  outcome run(const std::vector<statement>& statements, const patience& how) {
    send(statements);
    return wait(how);
  }

  /// What others have told with NOTIFY on channels that this connection listens to: the texts, without the
  /// channel. Does not wait.
  std::vector<std::string> take_notifications();

  /// Between transactions: waits until somebody tells something, or the time is over.
  /// @returns false when the connection has ended
  bool wait_for_notifications(const patience& how);

  /// The process that serves this connection.
  int server_process() const;

 private:
  struct closer {
    void operator()(pg_conn* handle) const;
  };

  explicit connection(pg_conn* handle);

  void fail_sending();
  bool take_results();
  outcome over();
  outcome end_lost();
  static void notice(void* self, const pg_result* what);

  std::unique_ptr<pg_conn, closer> handle_;
  bool broken_ = false;
  int silent_ = 0; ///< answers of libpq that were none, in a row
  std::vector<rows> results_;
  std::string state_; ///< of the first error
  std::string message_;
  bool doubtful_ = false; ///< the server warned that a commit may not be where it has to be
};

/// An error state that says something about this server at this time, not about the statement: shutting down,
/// only reading, out of connections.
bool server_is_unusable(std::string_view state);

} // namespace godwit::postgres
