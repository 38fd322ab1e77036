// One connection of the ZeroMQ exchange: to one peer, on one channel, in both directions.
//
// The lower node binds a ROUTER for it, the higher one connects a DEALER. A socket per connection
// gives every peer its own high-water mark, its own readiness for writing and its own monitor, so
// that a frozen peer holds up nobody else and a closed connection names its peer at once. One
// connection for both directions means that a peer's goodbye always comes before the end of the
// connection. Strangers who connect to the port (another program, another run) stay strangers: a
// ROUTER keeps their messages apart.
//
// One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <vector>
#include <zmq.hpp>

#include "hybridsync/wire/exchange.h"

namespace hybridsync {

class ZmqConnection {
 public:
  enum class Role { binds, connects };

  // No part of a message may have more than `max_part_bytes`: whoever sends one is disconnected.
  ZmqConnection(zmq::context_t& context, Role role, Channel channel, size_t max_part_bytes);
  ~ZmqConnection();
  ZmqConnection(const ZmqConnection&) = delete;

  int port() const;  // of a connection that binds
  void connect(int port);

  // What arrived: from the peer, or (where this end binds) from a stranger.
  struct Incoming {
    zmq::message_t sender;  // routing id; empty where this end connects
    zmq::message_t head;
    zmq::message_t body;
    bool two_parts = false;  // head and body, as every member sends
    int descriptor = -1;     // of the TCP connection
  };
  std::optional<Incoming> receive();

  // Where this end binds: the sender of this message is the peer from now on.
  void adopt(const Incoming& incoming);
  bool is_peer(const Incoming& incoming) const;

  // Queues a message; the body is not copied. flush() hands over what ZeroMQ takes now.
  void send(Bytes head, SharedBytes body);
  void flush();
  bool backlog() const { return !queue_.empty(); }

  // True once the connection to the peer has ended. What came before can still be received.
  bool ended();

  // What zmq_poll has to watch: messages, and the end.
  void watch(std::vector<zmq::pollitem_t>& items);

  // Forgets what has not left; `linger`: how long the rest may take once this is destroyed.
  void abandon(std::chrono::milliseconds linger);

 private:
  struct Outgoing {
    Bytes head;
    SharedBytes body;
  };
  bool hand_over(const Outgoing& message);
  void read_monitor();

  const Role role_;
  zmq::socket_t socket_;
  zmq::socket_t monitor_;
  Bytes peer_id_;  // empty: not known yet, or this end connects
  int peer_descriptor_ = -1;
  std::set<int> open_;  // descriptors of accepted connections, strangers' included
  bool ended_ = false;  // where this end connects
  std::deque<Outgoing> queue_;
};

}  // namespace hybridsync
