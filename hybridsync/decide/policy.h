// What rounds may do without everybody, and when: the one place where the protocol's times derive
// from the configuration and the measured round trip.
#pragma once

#include <string>

#include "hybridsync/config/config.h"
#include "hybridsync/decide/time.h"

namespace hybridsync {

// By default that of a synchronous tier without a link's delay. A plain value.
struct Policy {
  int staleness = 0;             // rounds that a node may lag
  Micros deadline = 0;           // from a round's first contribution; 0: none
  int quorum = kQuorumMajority;  // as configured; quorum_of() resolves it
  Late late = Late::fold;

  // Between CALL and closing: the call travels there and the contribution back (one round trip),
  // and as much again for the bytes. Not longer: it is time in which the fast nodes come nearer to
  // having to wait, and who comes later is in the next round. At least 2 ms, for threads to wake
  // up.
  Micros grace = 2'000;

  // A contribution without an answer is asked about after this long. At least 1 s, so that a round
  // that merely waits for others costs a message per second; 20 round trips, so that a question is
  // never asked while the answer is likely to be on its way.
  Micros remind_after = 1'000'000;

  // Between two heartbeats: often enough that a death is settled within a fraction of a second,
  // and no more often than an answer can come back.
  Micros heartbeat = 100'000;

  // A node that was silent for this long is suspected: three heartbeats, since one or two may be
  // held up by a retransmission, and two round trips for the last one and its answer.
  Micros suspect_after = 300'000;

  // Members that must be in before a round closes without the others, in a view of that many.
  int quorum_of(int members) const;

  // Until the next question about a contribution that was already asked about so often: doubles
  // each time, up to 8-fold, since who does not answer twice is more likely away than slow.
  Micros remind_pause(int reminders) const;

  // Results that an owner keeps for members behind: a member lags by at most `staleness` versions,
  // one more while a result is on its way, and one to spare before it needs the whole state.
  int log_results() const { return staleness + 2; }

  // Newest results for which a member still keeps its own contributions, to make them progress
  // again when a view change drops those results. A dropped tail is as long as two nodes can be
  // apart, one lagging and one ahead by the staleness; 8 more cover results that not everybody has
  // confirmed yet.
  int restore_results() const { return 2 * staleness + 8; }

  bool operator==(const Policy&) const = default;
};

// `round_trip`: between the two nodes that are farthest apart, not negative. The configuration is
// validated.
Policy make_policy(const Config& config, Micros round_trip);

// Why a run must not start with this policy, as the whole message of a ConfigError; empty: it may.
// A deadline that is over before a called or live node could be heard would skip everybody.
std::string unsuitable(const Config& config, const Policy& policy);

}  // namespace hybridsync
