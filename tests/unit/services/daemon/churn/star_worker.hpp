#pragma once

#include "tests/support/toy_worker.hpp"
#include "tests/unit/services/daemon/churn/star.hpp"

#include <caf/send.hpp>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace godwit {

/// A node with a toy worker and a link of its own.
class star_worker {
 public:
  star_worker(caf::actor_system& system, const std::string& name, std::shared_ptr<registry> nodes,
    const toy_worker_options& options)
    : worker_(system, options) {
    auto how = star_node(name, {"prefill", "decode", "cache"}, std::move(nodes));
    how.capacity = static_cast<std::uint32_t>(options.capacity);
    auto made = mesh::start(system, std::move(how));
    if (!made)
      throw std::runtime_error(made.error().message);
    mesh_ = std::move(*made);
    mesh_->offer("prefill", worker_.prefill);
    mesh_->offer("decode", worker_.decode);
    node_ = spawn_star_status(system, name, {"prefill", "decode", "cache"},
      static_cast<std::uint32_t>(options.capacity), [view = worker_.view] { return view->draining.load(); });
    mesh_->offer("node", caf::actor_cast<node_actor>(node_));
  }

  ~star_worker() {
    worker_.stop();
    caf::anon_send(node_, stop_atom::value);
    // The last batches of what runs are still to leave.
    mesh_->stop(link::end_cause::draining, std::chrono::milliseconds(100));
  }
  star_worker(const star_worker&) = delete;
  star_worker& operator=(const star_worker&) = delete;

  const toy_worker_view& view() const { return *worker_.view; }
  mesh& of() const { return *mesh_; }
  /// Takes no new work from now on.
  void drain() {
    worker_.view->draining = true;
    mesh_->drain();
  }

 private:
  toy_worker worker_;
  std::unique_ptr<mesh> mesh_;
  caf::actor node_;
};

} // namespace godwit
