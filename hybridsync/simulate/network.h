// The virtual network between nodes: when a message arrives, or that it does not. Time is the
// simulator's own. No events and no bytes in here, so that it can be tested by its numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hybridsync/decide/time.h"
#include "hybridsync/simulate/random.h"
#include "hybridsync/wire/exchange.h"

namespace hybridsync {

struct Link {
  Micros delay = 500;     // one way
  Micros jitter = 0;      // on top of it, at most
  double straggling = 0;  // share of messages that take up to 20 times the delay
  double bytes_per_second =
      0;  // that a node can send, and as many that it can receive; 0: no limit
  bool operator==(const Link&) const = default;
};

// Messages on one channel from one node to another arrive in the order in which they were sent, or
// not at all; between channels there is no order. A node's messages on one channel leave one after
// the other. What is on its way when a pair is cut, or sent while it is, is lost.
class Network {
 public:
  Network(int nodes, const Link& link, Random random);

  struct Flight {
    Micros at = 0;      // when it arrives, if it does
    uint64_t line = 0;  // of the connection that it is on
    bool lost = false;  // already
  };
  Flight send(int from, int to, Channel channel, size_t bytes, Micros now);
  // Whether what was sent is still on its way, at its time of arrival.
  bool arrives(int from, int to, const Flight& flight) const;

  // Between these two, in both directions. Cuts may overlap: each has to be healed.
  void cut(int a, int b);
  void heal(int a, int b);
  bool is_cut(int a, int b) const { return line(a, b).cuts > 0; }

  // What is on its way to this node is lost: its process is gone.
  void lose_to(int node);
  // What is on its way from this node is lost as well: the machine lost its power.
  void lose_from(int node);
  // When the newest message of these two has arrived: what a broken connection is noticed after.
  Micros quiet_after(int from, int to, Micros now) const;

 private:
  struct Line {
    int cuts = 0;
    uint64_t number = 0;     // counts what was lost on the way
    Micros arrived[2] = {};  // of the newest message on each channel
  };
  Line& line(int from, int to) { return lines_[static_cast<size_t>(from * nodes_ + to)]; }
  const Line& line(int from, int to) const {
    return lines_[static_cast<size_t>(from * nodes_ + to)];
  }
  Micros delay();
  Micros through(Micros& free, size_t bytes, Micros from) const;

  int nodes_;
  Link link_;
  Random random_;
  std::vector<Line> lines_;
  std::vector<Micros> sends_[2];  // by node: when its uplink is free again
  std::vector<Micros> takes_[2];
};

}  // namespace hybridsync
