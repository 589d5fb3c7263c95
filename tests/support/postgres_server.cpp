#include "tests/support/postgres_server.hpp"

#include <fcntl.h>
#include <libpq-fe.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace godwit::test {

namespace {

using clock = std::chrono::steady_clock;

const std::string programs = "/usr/lib/postgresql/15/bin/";

/// A command as the package's user: the server refuses to run as root.
std::vector<std::string> as_server_user(std::vector<std::string> command) {
  command.front().insert(0, programs);
  if (::access(command.front().c_str(), X_OK) != 0)
    throw std::runtime_error(
      command.front() + " is missing: these tests need the package postgresql-15 (tools/packages test)");
  if (::geteuid() != 0)
    return command;
  std::vector<std::string> out{
    "setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--pdeathsig", "QUIT", "--"};
  out.insert(out.end(), command.begin(), command.end());
  return out;
}

pid_t spawn(const std::vector<std::string>& command, const std::filesystem::path& words) {
  std::vector<char*> arguments;
  for (const auto& one : command)
    arguments.push_back(const_cast<char*>(one.c_str())); // NOLINT: as exec wants them
  arguments.push_back(nullptr);
  const int out = ::open(words.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const pid_t child = ::fork();
  if (child < 0)
    throw std::runtime_error("cannot fork");
  if (child == 0) {
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::close_range(3, ~0U, 0);
    // The server's user may not enter ours.
    if (::chdir("/") != 0)
      ::_exit(126);
    ::setpgid(0, 0);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(out);
  return child;
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void run(const std::vector<std::string>& command, const std::filesystem::path& words) {
  const auto child = spawn(command, words);
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0)
    throw std::runtime_error("a command failed: " + command.front() + " ... : " + text_of(words));
}

/// A folder that the server's user may use.
void hand_over(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  ::chmod(folder.c_str(), 0700);
  if (::geteuid() != 0)
    return;
  ::chmod(folder.parent_path().c_str(), 0711);
  const auto* user = ::getpwnam("postgres");
  if (user == nullptr || ::chown(folder.c_str(), user->pw_uid, user->pw_gid) != 0)
    throw std::runtime_error("there is no user postgres: these tests need the package postgresql-15");
}

std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(socket, reinterpret_cast<sockaddr*>(&address), size) != 0
      || ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("no free port");
  ::close(socket);
  return ntohs(address.sin_port);
}

/// A cluster that was just made, to be copied.
const std::filesystem::path& fresh_cluster() {
  static const temporary_folder parent;
  static const auto cluster = [] {
    const auto data = parent.path() / "data";
    hand_over(data);
    run(as_server_user({"initdb", "--pgdata=" + data.string(), "--username=godwit", "--auth=trust",
          "--encoding=UTF8", "--locale=C", "--no-sync"}),
      parent.path() / "initdb.log");
    return data;
  }();
  return cluster;
}

} // namespace

postgres_server::postgres_server(settings more) : more_(std::move(more)), port_(free_port()) {
  const auto& from = fresh_cluster();
  run({"cp", "-a", from.string(), (folder_.path() / "data").string()}, folder_.path() / "copy.log");
  ::chmod(folder_.path().c_str(), 0711);
  start();
}

postgres_server::postgres_server(postgres_server& primary, std::string_view name)
  : more_(primary.more_), port_(free_port()) {
  const auto data = folder_.path() / "data";
  hand_over(data);
  run(as_server_user({"pg_basebackup", "--pgdata=" + data.string(), "--write-recovery-conf", "--create-slot",
        "--slot=" + std::string(name), "--checkpoint=fast", "--no-sync",
        "--dbname=host=127.0.0.1 port=" + std::to_string(primary.port())
          + " user=godwit application_name=" + std::string(name)}),
    folder_.path() / "backup.log");
  start();
}

postgres_server::~postgres_server() {
  kill();
}

std::string postgres_server::url(std::string_view user) const {
  return "postgresql://" + std::string(user) + "@" + host_and_port() + "/postgres";
}

void postgres_server::launch() {
  std::vector<std::string> command{"postgres", "-D", (folder_.path() / "data").string()};
  std::vector<std::string> all{"listen_addresses=127.0.0.1", "port=" + std::to_string(port_),
    "unix_socket_directories=", "shared_buffers=16MB", "max_connections=50", "max_wal_senders=6",
    "wal_sender_timeout=2s", "wal_receiver_timeout=2s", "wal_retrieve_retry_interval=100ms",
    "wal_receiver_status_interval=1s", "deadlock_timeout=200ms", "autovacuum=off",
    "log_min_messages=warning"};
  all.insert(all.end(), more_.begin(), more_.end());
  for (const auto& one : all) {
    command.emplace_back("-c");
    command.push_back(one);
  }
  process_ = spawn(as_server_user(command), folder_.path() / "server.log");
}

void postgres_server::start() {
  launch();
  const auto end = clock::now() + std::chrono::seconds(60);
  while (clock::now() < end) {
    int status = 0;
    // After a kill its memory may be in use for a moment still, by children that have not noticed.
    if (::waitpid(process_, &status, WNOHANG) == process_) {
      process_ = 0;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      launch();
      continue;
    }
    const std::unique_ptr<PGconn, decltype(&PQfinish)> line(
      PQconnectdb((url() + "?connect_timeout=2").c_str()), &PQfinish);
    if (PQstatus(line.get()) == CONNECTION_OK)
      return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  throw std::runtime_error("the PostgreSQL server did not start: " + text_of(folder_.path() / "server.log"));
}

void postgres_server::signal_all(int signal) const {
  // Its children have groups of their own, so they are found by their parent.
  std::ifstream list("/proc/" + std::to_string(process_) + "/task/" + std::to_string(process_) + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;)
    children.push_back(child);
  ::kill(process_, signal);
  for (const auto child : children)
    ::kill(child, signal);
}

void postgres_server::kill() {
  if (process_ <= 0)
    return;
  signal_all(SIGKILL);
  int status = 0;
  ::waitpid(process_, &status, 0);
  process_ = 0;
}

void postgres_server::pause() {
  signal_all(SIGSTOP);
}

void postgres_server::resume() {
  signal_all(SIGCONT);
}

void postgres_server::promote() {
  ask("SELECT pg_promote(true, 30)");
}

std::string postgres_server::ask(const std::string& sql) const {
  const std::unique_ptr<PGconn, decltype(&PQfinish)> line(
    PQconnectdb((url() + "?connect_timeout=5&options=-cclient_min_messages%3Dwarning").c_str()), &PQfinish);
  const std::unique_ptr<PGresult, decltype(&PQclear)> answer(PQexec(line.get(), sql.c_str()), &PQclear);
  const auto status = PQresultStatus(answer.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
    throw std::runtime_error(sql + ": " + PQerrorMessage(line.get()));
  return PQntuples(answer.get()) > 0 ? PQgetvalue(answer.get(), 0, 0) : "";
}

void postgres_server::set(const std::string& name, const std::string& value) const {
  ask("ALTER SYSTEM SET " + name + " = '" + value + "'");
  ask("SELECT pg_reload_conf()");
}

postgres_server& postgres_server::common() {
  static postgres_server one(unsynced());
  return one;
}

} // namespace godwit::test
