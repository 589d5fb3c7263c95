#pragma once

#include "messages/error.hpp"
#include "messages/ids.hpp"
#include "messages/letter.hpp"
#include "messages/schemas/status.capnp.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace godwit {

/// Where a node with the role `session` keeps its sessions.
enum class session_store {
  none,   ///< it has no such role
  own,    ///< in a journal that it alone has
  shared, ///< in one that others have too
};

/// This node among those with sessions.
struct session_place {
  session_store where = session_store::none;
  node_name self;
  std::int64_t started_at = 0; ///< seconds since 1970
};

/// What this node knows of the others: who is up, what each says of itself, which roles of it are to be used,
/// and when to ask again. Plain: knows no actors and no sockets, and time as an argument.
class mesh_view {
 public:
  using moment = std::chrono::milliseconds; ///< since any fixed time

  struct pace {
    moment again{500}; ///< doubles up to `longest` while the answers are the same
    moment longest{8'000};
    moment refresh{30'000};
    moment hint{50}; ///< between two questions at least, however often a node says that it has changed
  };

  /// A question to a node: what it serves. Answers to questions of an earlier conversation are of no use.
  struct ask {
    node_name node;
    std::uint64_t conversation = 0;
  };

  /// What of a node is to be used from now on, or no more.
  struct change {
    node_name node;
    std::string name; ///< as its actor is published: tokenizer, router, directory
    bool there = false;
    bool draining = false;

    bool operator==(const change&) const = default;
  };
  using changes = std::vector<change>;

  struct node {
    bool up = false;
    std::string why;            ///< not up, or not used
    bool answered = false;      ///< `status` is of this conversation
    bool draining = false;      ///< by its last answer
    bool worker = false;        ///< computes for others
    bool intake = false;        ///< the worker can have prompts computed by other nodes
    bool prompts = false;       ///< computes prompts for workers of other nodes, and takes new ones
    std::uint32_t capacity = 0; ///< of the worker
  };

  /// @param models that this node serves, with their fingerprints; empty: it takes any
  mesh_view(std::map<std::string, std::string> models, pace times, session_place sessions = {})
    : models_(std::move(models)), pace_(times), sessions_(std::move(sessions)) {}

  void known(const node_name& name);
  changes forgotten(const node_name& name);
  /// A node that is not known is none: this may be late news of one that has left the registry.
  void came(const node_name& name, moment now);
  changes went(const node_name& name, const std::string& why);

  /// The questions to put now; each ends with answered() or failed().
  std::vector<ask> due(moment now);
  /// When due() has something next; moment::max(): not before something else happens.
  moment next() const;

  changes answered(const ask& which, schema::NodeStatus::Reader status, moment now);
  /// What is used stays in use: whether a node is there is the link's to say.
  void failed(const ask& which, const error& why, moment now);
  /// A node says that something of it has changed.
  void hinted(const node_name& name, moment now);
  /// Something of a node is missing that it said it has.
  void again(const node_name& name, moment now);

  /// Why this node must not have sessions beside the others; empty: it may. Two nodes with sessions in
  /// journals that are not the same would each know half of them, and take the other's for lost. The one
  /// whose journal nobody shares is wrong; of two such ones it is the one that started later.
  std::string sessions_refused() const;

  /// What is in use of all nodes under one name.
  changes in_use(const std::string& name) const;
  std::map<node_name, node> nodes() const;
  bool is_up(const node_name& name) const;
  /// @returns whether answers to this question still count
  bool current(const ask& which) const;

 private:
  struct entry {
    node shown;
    std::uint64_t conversation = 0;
    bool asking = false;
    bool hinted = false;
    moment asked{0};
    moment next = moment::max();
    moment pause{0}; ///< before the next question but one to a node that is not ready; 0: the first
    std::map<std::string, bool> uses; ///< names, and whether they drain
    std::string refuses_sessions;     ///< why this node may have none beside it
  };

  void weigh_sessions(entry& of, const node_name& name, schema::NodeStatus::Reader status,
    std::map<std::string, bool>& uses) const;

  /// Before a node that did not answer, or is not ready, is asked again.
  moment pause(entry& of) const;
  changes use(const node_name& name, entry& of, std::map<std::string, bool> now);

  const std::map<std::string, std::string> models_;
  const pace pace_;
  const session_place sessions_;
  std::map<node_name, entry> all_;
  std::uint64_t conversations_ =
    0; ///< of all nodes: one that leaves the list and is back begins with none of before
};

/// What a node's status says that others may use of it, and whether it drains: tokenizer, router, directory,
/// worker, intake (of a worker that leaves long prompts to others), prompts (of a node that computes them). A
/// node that is starting counts with those of its parts that are ready, so that two nodes which need each
/// other do not wait for each other. One that has failed counts with them as one that drains, which it will
/// do next: what runs there is to find its end. One whose actor `journal` is not ready has no directory for
/// others.
std::map<std::string, bool> usable_roles(schema::NodeStatus::Reader status);

} // namespace godwit
