// The Exchange inside one process: ends of one hub, for tests and simulation.
#pragma once

#include <memory>
#include <string>

#include "hybridsync/wire/exchange.h"

namespace hybridsync {

// Joins `nodes` ends, which may be used by as many threads and may outlive the hub.
class MemoryHub {
 public:
  explicit MemoryHub(int nodes);
  ~MemoryHub();

  // This node's end; once per node.
  std::unique_ptr<Exchange> join(int node);

  // As if the node's process had died: the others get PeerLost. Any thread.
  void lose(int node, const std::string& why);

 private:
  friend class MemoryExchange;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hybridsync
