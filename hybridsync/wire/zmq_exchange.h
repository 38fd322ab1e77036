// The Exchange over ZeroMQ: two connections per peer (control, bulk), loopback only for now.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "hybridsync/config/config.h"
#include "hybridsync/wire/exchange.h"
#include "hybridsync/wire/rendezvous.h"

namespace hybridsync {

struct ZmqOptions {
  std::string run_id;  // messages of another run are refused
  int node = 0;
  int nodes = 1;
  int lane = 0;            // local rank; joins the ranks with the same one
  int ranks_per_node = 1;  // rank of (node, lane) at the rendezvous: node * ranks_per_node + lane
  // Header + body of the largest legal message, from the fragment table. Whoever sends more loses
  // its connection.
  size_t max_message_bytes = 64 << 20;
  EmulateConfig emulate;
  // 128 zeroed bytes that all ranks of the node share and that outlive the exchange: the emulated
  // link's state, since lanes share the node's link. Empty: this exchange's own.
  std::span<std::byte> link;
  std::function<void(const std::string&)>
      log;  // a sentence on what was refused; null: standard error
};

// Binds, meets the others at the rendezvous, connects to all; returns when every connection stands.
// Collective over all ranks of the run (also those of other lanes). Throws RunEnded past the
// patience's limit, naming the nodes that are missing, and when a peer dies meanwhile.
//
// A peer whose connection closes is lost; a silent one never is. Destruction says goodbye and waits
// until the peers have everything that was sent, for 2 s at most.
std::unique_ptr<Exchange> make_zmq_exchange(const ZmqOptions& options, Rendezvous& rendezvous,
                                            const Patience& patience);

}  // namespace hybridsync
