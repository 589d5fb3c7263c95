#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace godwit::http {

using headers = std::vector<std::pair<std::string, std::string>>;

/// A request that has been read completely and checked for form: method known, target parsed, sizes within
/// the limits.
struct request {
  std::string method;                                     ///< upper case
  std::string path;                                       ///< percent-decoded, begins with '/'
  std::vector<std::pair<std::string, std::string>> query; ///< percent-decoded, in order
  headers fields;
  std::string body;

  /// A header's value, name compared without case; nothing if absent.
  std::optional<std::string_view> field(std::string_view name) const;
  /// The first query parameter of that name.
  std::optional<std::string_view> parameter(std::string_view name) const;
};

struct response {
  int status = 200;
  headers fields;
  std::string body;
};

/// One request and its answer: either one `respond`, or `begin`, any number of `write` and one `end`. Any
/// thread may call. The first answer counts; a second `respond` or `begin` is ignored. After the client has
/// left, writes report it and do nothing. An exchange that is dropped without an answer is answered 500, so
/// that no client hangs, or 499 if its client has left before; one that is dropped between `begin` and `end`
/// is cut, so that no client takes the part for the whole.
///
/// A client that closes its sending side has left, as far as `on_leave` and streams go: the two cannot be
/// told apart before bytes bounce. A `respond` is sent all the same.
class exchange {
 public:
  /// Told when the socket has taken the bytes (true) or the client is gone (false). Called on a server
  /// thread, or by `write` itself when the client had left before: do little.
  using written = std::function<void(bool)>;

  virtual ~exchange() = default;

  virtual const http::request& request() const = 0;

  /// The whole answer; content-length is set here.
  virtual void respond(http::response answer) = 0;

  /// Head of a streamed answer (chunked).
  virtual void begin(int status, http::headers fields) = 0;
  /// The next bytes of a streamed answer. The caller keeps few writes under way: that is the back-pressure on
  /// slow readers. A caller who piles up more than the server's limit loses the connection.
  virtual void write(std::string bytes, written done) = 0;
  /// Last chunk of a streamed answer.
  virtual void end() = 0;

  /// Calls back once when the client leaves before the end of the answer; at once if it has left already.
  /// Not called when the server itself closes the connection in `server::stop`: a shutdown is nobody's
  /// cancel. The callback must not own the exchange.
  virtual void on_leave(std::function<void()> callback) = 0;
};

/// What answers requests.
class handler {
 public:
  virtual ~handler() = default;
  /// Called on a server thread; must not block.
  virtual void handle(std::shared_ptr<exchange> call) = 0;
};

} // namespace godwit::http
