#pragma once

#include "services/link/actor_exchange.hpp"
#include "services/link/bench_bare.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace godwit::link::bench {

/// One of the two nodes of the bench, with an actor that answers each request with what it brings.
class bench_node {
 public:
  bench_node(const std::string& name, const std::optional<node_keys>& keys);
  ~bench_node();
  bench_node(const bench_node&) = delete;
  bench_node& operator=(const bench_node&) = delete;

  /// Endpoints, with spaces between.
  std::string endpoints() const;
  void meet(const std::string& name, const std::string& endpoints, const std::optional<node_keys>& keys);
  bool wait_for(const std::string& name);
  mesh_link& link() { return *link_; }

  /// Times of requests from an actor here to one of that node; an empty name: to one here.
  std::vector<double> actor_requests(const std::string& node, std::size_t count, std::size_t words);

 private:
  caf::actor_system_config config_;
  std::shared_ptr<mesh_link> link_;
  std::shared_ptr<receiver> receiver_;
  std::shared_ptr<actor_exchange> exchange_;
  std::unique_ptr<caf::actor_system> system_;
};

/// Measures the link as a part of the program that is no actor uses it.
class link_client {
 public:
  link_client(bench_node& node, std::string peer) : node_(node), peer_(std::move(peer)) {}

  /// Bytes of a frame with so many bytes of words.
  std::size_t frame_bytes(std::size_t words) const;
  std::vector<double> requests(std::size_t count, std::size_t words);
  double letters(std::size_t count, std::size_t words);
  double pages(std::size_t count, std::size_t bytes, std::size_t words, std::vector<double>* busy);

 private:
  bench_node& node_;
  std::string peer_;
};

} // namespace godwit::link::bench
