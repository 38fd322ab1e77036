// The Exchange over ZeroMQ: two connections per peer (control, bulk), loopback only for now.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "hybridsync/config/config.h"
#include "hybridsync/wire/exchange.h"
#include "hybridsync/wire/rendezvous.h"

namespace hybridsync {

struct ZmqOptions {
  std::string run_id;            // frames of another run are dropped with a log line
  int node = 0;
  int nodes = 1;
  int lane = 0;                  // local rank; joins the ranks with the same one
  int ranks_per_node = 1;        // rank of (node, lane) in the rendezvous = node * ranks_per_node + lane
  size_t max_message_bytes = 64 << 20;  // header + body of the largest legal message, from the fragment table
  EmulateConfig emulate;
  std::span<std::byte> link;     // 128 zeroed bytes that all ranks of the node share: the emulated link's
                                 // state, since lanes share the node's link. Empty: this exchange's own.
};

// Binds, meets the others at the rendezvous, connects to all; returns when every connection stands.
// Collective over all ranks of the run (also those of other lanes). Throws RunEnded past the patience's limit.
std::unique_ptr<Exchange> make_zmq_exchange(const ZmqOptions& options, Rendezvous& rendezvous,
                                            const Patience& patience);

}  // namespace hybridsync
