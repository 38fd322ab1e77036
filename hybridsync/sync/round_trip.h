// How long a message and its answer take between this node and the farthest other one, measured
// once at start: the protocol's times derive from it.
#pragma once

#include "hybridsync/decide/time.h"
#include "hybridsync/wire/exchange.h"

namespace hybridsync {

// Pings every other node a few times and answers their pings; returns when all nodes of the lane
// have finished. The least of each node's round trips, the largest over the nodes, in `round_trip`.
// Nothing else may use the exchange meanwhile.
Outcome measure_round_trip(Exchange& exchange, const Patience& patience, Micros& round_trip);

}  // namespace hybridsync
