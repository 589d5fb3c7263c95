#include "services/postgres/connection.hpp"

#include "messages/check.hpp"

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>

namespace godwit::postgres {

namespace {

using std::chrono::milliseconds;

/// How often a wait looks whether it should end early.
constexpr milliseconds tick{50};

/// @returns false when the time is over
bool wait_for_socket(int socket, short events, const patience& how) {
  while (!how.over()) {
    const auto left = std::chrono::duration_cast<milliseconds>(how.until - clock::now()) + milliseconds(1);
    pollfd one{socket, events, 0};
    if (::poll(&one, 1, static_cast<int>(std::min(left, tick).count())) > 0)
      return true;
  }
  return false;
}

std::string trimmed(const char* message) {
  std::string out = message == nullptr ? "" : message;
  while (!out.empty() && (out.back() == '\n' || out.back() == ' '))
    out.pop_back();
  std::replace(out.begin(), out.end(), '\n', ' ');
  return out;
}

std::string field_of(const PGresult* from, int which) {
  const auto* text = PQresultErrorField(from, which);
  return text == nullptr ? std::string() : std::string(text);
}

} // namespace

rows::rows(pg_result* from) : result_(from, [](pg_result* one) { PQclear(one); }) {}

std::size_t rows::size() const {
  return static_cast<std::size_t>(PQntuples(result_.get()));
}

field rows::at(std::size_t row, std::size_t column) const {
  const auto r = static_cast<int>(row);
  const auto c = static_cast<int>(column);
  if (row >= size() || c >= PQnfields(result_.get()) || PQgetisnull(result_.get(), r, c) != 0)
    return std::nullopt;
  return std::string_view(
    PQgetvalue(result_.get(), r, c), static_cast<std::size_t>(PQgetlength(result_.get(), r, c)));
}

void connection::closer::operator()(pg_conn* handle) const {
  PQfinish(handle);
}

connection::connection(pg_conn* handle) : handle_(handle) {
  PQsetNoticeReceiver(handle, &connection::notice, this);
}

result<std::unique_ptr<connection>> connection::open(
  const server_address& to, const address& all, const patience& how) {
  std::vector<const char*> keys;
  std::vector<const char*> values;
  for (const auto& [key, value] : to.words) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  keys.push_back(nullptr);
  values.push_back(nullptr);
  // Names of hosts are looked up in here, by the system's resolver and with its time-outs.
  std::unique_ptr<pg_conn, closer> handle(PQconnectStartParams(keys.data(), values.data(), 0));
  if (handle == nullptr)
    return fail(errc::resource_exhausted, "no memory for a connection to the database");
  const auto failed = [&] {
    return fail(PQconnectionNeedsPassword(handle.get()) != 0 ? errc::permission : errc::io,
      to.name + ": " + without_password(trimmed(PQerrorMessage(handle.get())), all));
  };
  for (auto want = PGRES_POLLING_WRITING; want != PGRES_POLLING_OK; want = PQconnectPoll(handle.get())) {
    if (want == PGRES_POLLING_FAILED || PQstatus(handle.get()) == CONNECTION_BAD)
      return failed();
    if (!wait_for_socket(
          PQsocket(handle.get()), want == PGRES_POLLING_READING ? short{POLLIN} : short{POLLOUT}, how))
      return fail(errc::deadline, to.name + ": no connection in time");
  }
  if (PQsetnonblocking(handle.get(), 1) != 0 || PQenterPipelineMode(handle.get()) != 1)
    return failed();
  return std::unique_ptr<connection>(new connection(handle.release()));
}

void connection::send(const std::vector<statement>& statements) {
  silent_ = 0;
  results_.clear();
  state_.clear();
  message_.clear();
  doubtful_ = false;
  for (const auto& one : statements) {
    std::vector<Oid> types;
    std::vector<const char*> values;
    std::vector<int> lengths;
    for (const auto& each : one.parameters) {
      types.push_back(static_cast<Oid>(each.of));
      values.push_back(each.bytes.c_str());
      lengths.push_back(static_cast<int>(each.bytes.size()));
    }
    const std::vector<int> formats(values.size(), 1);
    const auto count = static_cast<int>(values.size());
    const int sent = one.prepared ? PQsendQueryPrepared(handle_.get(), one.text.c_str(), count, values.data(),
                       lengths.data(), formats.data(), 1)
                                  : PQsendQueryParams(handle_.get(), one.text.c_str(), count, types.data(),
                                    values.data(), lengths.data(), formats.data(), 1);
    if (sent != 1)
      return fail_sending();
  }
  if (PQpipelineSync(handle_.get()) != 1)
    fail_sending();
}

void connection::prepare(const std::vector<std::pair<std::string, std::string>>& names_and_texts) {
  results_.clear();
  state_.clear();
  message_.clear();
  for (const auto& [name, text] : names_and_texts)
    if (PQsendPrepare(handle_.get(), name.c_str(), text.c_str(), 0, nullptr) != 1)
      return fail_sending();
  if (PQpipelineSync(handle_.get()) != 1)
    fail_sending();
}

void connection::fail_sending() {
  broken_ = true;
}

outcome connection::wait(const patience& how) {
  while (!broken_) {
    const int flushed = PQflush(handle_.get());
    if (flushed < 0)
      break;
    if (take_results())
      return over();
    if (broken_)
      break;
    const auto events = static_cast<short>(flushed > 0 ? POLLIN | POLLOUT : POLLIN);
    if (!wait_for_socket(PQsocket(handle_.get()), events, how))
      return {outcome::kind::pending, {}, {}, "no answer in time"};
    if (PQconsumeInput(handle_.get()) != 1) {
      // What came before the end may still say why.
      if (take_results())
        return over();
      break;
    }
  }
  return end_lost();
}

/// @returns true when the transaction is over
bool connection::take_results() {
  while (PQisBusy(handle_.get()) == 0) {
    auto* got = PQgetResult(handle_.get());
    if (got == nullptr) {
      // Between two statements; or, on a connection that has ended, for ever.
      if (PQstatus(handle_.get()) == CONNECTION_BAD) {
        broken_ = true;
        return false;
      }
      if (++silent_ > 2)
        return false;
      continue;
    }
    silent_ = 0;
    rows one(got);
    switch (PQresultStatus(got)) {
    case PGRES_PIPELINE_SYNC:
      return true;
    case PGRES_TUPLES_OK:
    case PGRES_COMMAND_OK:
      results_.push_back(std::move(one));
      break;
    case PGRES_PIPELINE_ABORTED:
      break;
    default:
      if (message_.empty()) {
        state_ = field_of(got, PG_DIAG_SQLSTATE);
        message_ = trimmed(PQresultErrorMessage(got));
      }
    }
  }
  return false;
}

outcome connection::over() {
  if (!message_.empty()) {
    // Without a state the words are libpq's own: something on the way broke.
    if (state_.empty() || server_is_unusable(state_))
      return end_lost();
    return {outcome::kind::refused, {}, state_, message_};
  }
  if (doubtful_) {
    message_ = "the server acknowledged a commit that its standbys may not have";
    return end_lost();
  }
  return {outcome::kind::done, std::move(results_), {}, {}};
}

outcome connection::end_lost() {
  broken_ = true;
  if (message_.empty())
    message_ = trimmed(PQerrorMessage(handle_.get()));
  return {outcome::kind::lost, {}, state_, message_};
}

void connection::notice(void* self, const pg_result* what) {
  // A commit whose wait for the standbys was cut short is reported as done, with a warning (syncrep.c). No
  // other warning is expected of our statements, so any is taken for that one.
  if (field_of(what, PG_DIAG_SEVERITY_NONLOCALIZED) == "WARNING")
    static_cast<connection*>(self)->doubtful_ = true;
}

std::vector<std::string> connection::take_notifications() {
  std::vector<std::string> out;
  for (;;) {
    const std::unique_ptr<PGnotify, decltype(&PQfreemem)> one(PQnotifies(handle_.get()), &PQfreemem);
    if (one == nullptr)
      return out;
    out.emplace_back(one->extra);
  }
}

bool connection::wait_for_notifications(const patience& how) {
  if (broken_)
    return false;
  if (!wait_for_socket(PQsocket(handle_.get()), POLLIN, how))
    return true;
  if (PQconsumeInput(handle_.get()) != 1 || PQstatus(handle_.get()) != CONNECTION_OK)
    broken_ = true;
  return !broken_;
}

int connection::server_process() const {
  return PQbackendPID(handle_.get());
}

bool server_is_unusable(std::string_view state) {
  // Connection exceptions, operator intervention but for a cancelled statement, too many connections, a
  // server that only reads, and a crash beside this process.
  return state.starts_with("08") || (state.starts_with("57P")) || state == "53300" || state == "25006";
}

} // namespace godwit::postgres
