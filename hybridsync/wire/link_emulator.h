// A slow link between nodes, without one: says when a message would have left and arrived.
//
// A node sends at `rate` and receives at `rate`; all of its ranks share both, through a few words
// of shared memory. A message of S bits that finds the link idle takes S/rate + rtt/2: it is
// received while it is sent (the rate counts once), and one that finds the link busy queues behind
// what is there, first at its sender's uplink, then at its receiver's downlink.
//
// The two channels are two connections: control messages overtake bulk ones, but the time that
// they take is taken from the bulk's. Works between processes of one machine, which share the
// monotonic clock. Times are its nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hybridsync/config/config.h"
#include "hybridsync/wire/exchange.h"

namespace hybridsync {

// The arithmetic, with time as an argument. Any thread, any process that shares `state`.
class LinkClock {
 public:
  static constexpr size_t kStateBytes = 128;

  // `state`: kStateBytes of zeroed memory, aligned to 8, that all ranks of the node share and that
  // outlives this; empty: a state of this object's own.
  LinkClock(const EmulateConfig& config, std::span<std::byte> state);

  // Queues the message at this node's uplink: when its first bit leaves.
  int64_t depart(Channel channel, size_t bytes, int64_t now_ns);
  // When that bit reaches the receiver's downlink.
  int64_t reach(int64_t departed_ns) const { return departed_ns + half_rtt_ns_; }
  // Queues the message at this node's downlink: when its last bit is there. To be called in the
  // order of `reached_ns`.
  int64_t arrive(Channel channel, size_t bytes, int64_t reached_ns);

  // The time that the bytes take on an idle link, rounded up.
  int64_t duration_ns(size_t bytes) const;

 private:
  // One direction of the link: until when it is taken.
  struct Lane {
    int64_t bulk_free_ns = 0;
    int64_t control_free_ns = 0;
  };
  int64_t reserve(Lane& lane, Channel channel, int64_t from_ns, int64_t duration_ns);
  Lane& lane(size_t offset) const;

  double ns_per_byte_ = 0;
  int64_t half_rtt_ns_ = 0;
  std::unique_ptr<std::byte[]> own_;
  std::byte* state_;
};

// Messages on their way to this node: received too early, held until they would have arrived.
// Messages of one sender and channel keep their order. One thread.
class InTransit {
 public:
  explicit InTransit(LinkClock& clock) : clock_(clock) {}

  // `departed_ns` is what the sender's depart() said.
  void add(Received message, Channel channel, int64_t departed_ns);
  // The next message that has arrived by `now_ns`, if any.
  std::optional<Received> take(int64_t now_ns);
  // When to call take() again; nothing when nothing is on its way.
  std::optional<int64_t> next_ns() const;
  // Forgets what this node sent and what has not arrived.
  void drop(int from);

 private:
  struct Held {
    int64_t at_ns;
    int64_t order;  // of add() or of arrive(): equal times keep it
    Channel channel;
    Received message;
  };
  static bool later(const Held& a, const Held& b);
  static Held pop(std::vector<Held>& heap);
  static void push(std::vector<Held>& heap, Held held);
  void schedule(int64_t now_ns);

  LinkClock& clock_;
  std::vector<Held> travelling_;  // heap by the time of reaching the downlink
  std::vector<Held> arriving_;    // heap by the time of the last bit
  int64_t order_ = 0;
};

}  // namespace hybridsync
