// The ends of an exchange inside this process, for every back end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "hybridsync/wire/memory_exchange.h"
#include "hybridsync/wire/rendezvous.h"
#include "hybridsync/wire/zmq_exchange.h"

namespace hybridsync {

// All leave at once: one that leaves waits for the others to notice.
class Ends : public std::vector<std::unique_ptr<Exchange>> {
 public:
  using std::vector<std::unique_ptr<Exchange>>::vector;
  Ends(Ends&&) = default;
  ~Ends() {
    std::vector<std::thread> threads;
    for (std::unique_ptr<Exchange>& end : *this) {
      threads.emplace_back([&end] { end.reset(); });
    }
    for (std::thread& thread : threads) thread.join();
  }
};

inline Patience patience_of(std::chrono::milliseconds limit) {
  Patience patience;
  patience.limit = limit;
  return patience;
}

inline Ends memory_ends(int nodes) {
  MemoryHub hub(nodes);
  Ends ends;
  for (int node = 0; node < nodes; ++node) ends.push_back(hub.join(node));
  return ends;
}

// Every rank makes its own in a thread: making is collective. `adjust` may change the options.
inline Ends zmq_ends(int nodes, int lanes = 1,
                     const std::function<void(ZmqOptions&)>& adjust = nullptr) {
  const int ranks = nodes * lanes;
  RendezvousHost host(ranks, "run");
  Ends ends(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const Patience patience = patience_of(std::chrono::seconds(60));
      Rendezvous rendezvous(host.address(), "run", rank, ranks, patience);
      ZmqOptions options;
      options.run_id = "run";
      options.node = rank / lanes;
      options.nodes = nodes;
      options.lane = rank % lanes;
      options.ranks_per_node = lanes;
      if (adjust) adjust(options);
      ends[static_cast<size_t>(rank)] = make_zmq_exchange(options, rendezvous, patience);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}

inline Bytes bytes_from(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(begin, begin + text.size());
}

inline std::string text_of(const Bytes& bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

inline SharedBytes shared(Bytes bytes) { return std::make_shared<const Bytes>(std::move(bytes)); }

// Bytes of a pattern that no shift or swap leaves as it is.
inline Bytes pattern(size_t size, uint32_t seed) {
  Bytes bytes(size);
  uint32_t state = seed * 2654435761u + 1;
  for (std::byte& b : bytes) {
    state = state * 1664525u + 1013904223u;
    b = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

// The next event within a limit that only guards against hanging.
inline std::optional<ExchangeEvent> next_event(Exchange& exchange) {
  return exchange.poll(Clock::now() + std::chrono::seconds(30));
}

}  // namespace hybridsync
