// Messages between nodes: whatever has arrived by now. Never blocks the sender, survives a dead or
// frozen peer. One Exchange per rank and tier joins the ranks of one lane: the rank with the same
// local number on every node.
//
// Used by one thread (the comm thread), except wake() and counters().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "hybridsync/wire/bytes.h"
#include "hybridsync/wire/wait.h"

namespace hybridsync {

// Small messages and large ones travel on connections of their own, so that a heartbeat never waits
// behind a result.
enum class Channel { control, bulk };

struct Received {
  int from = -1;  // node
  Bytes header;   // at any alignment: copy before use
  Bytes body;     // may be empty
};

// The connection to a node broke (its process died), or it sent what no member sends.
struct PeerLost {
  int node = -1;
  std::string why;
};

using ExchangeEvent = std::variant<Received, PeerLost>;

class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual int node() const = 0;   // this end
  virtual int nodes() const = 0;  // ends in all

  // Takes the message and returns at once. `to` is another node (never this one). Messages to one
  // node on one channel arrive in order or not at all; those to a node that is lost or has left are
  // dropped. body may be null. What the wire does not take now leaves during poll().
  virtual void send(int to, Channel channel, Bytes header, SharedBytes body) = 0;

  // The next event; nothing when `until` has passed or wake() was called. A node is lost once, and
  // nothing comes from it afterwards. A node whose Exchange was destroyed has left in order: what
  // it sent still arrives, and it is not lost.
  virtual std::optional<ExchangeEvent> poll(Clock::time_point until) = 0;

  // Ends the current or the next poll() early. Any thread.
  virtual void wake() = 0;

  // Header and body bytes handed to send() and taken from poll(), without the transport's framing.
  // Any thread.
  struct Counters {
    int64_t bytes_sent = 0;
    int64_t bytes_received = 0;
    int64_t messages_sent = 0;
    int64_t messages_received = 0;
    // Malformed, or of another run: dropped, the first of each sender with a log line.
    int64_t messages_refused = 0;
  };
  virtual Counters counters() const = 0;
};

}  // namespace hybridsync
