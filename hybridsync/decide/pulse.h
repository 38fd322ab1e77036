// A node's side of heartbeats: when one is due, and until when the coordinator's answer counts.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "hybridsync/decide/policy.h"

namespace hybridsync {

class Pulse {
 public:
  // The first heartbeat is due at once.
  Pulse(const Policy& policy, Micros now);

  // The counter of a heartbeat to send now, if one is due. After a pause of its own loop only one.
  std::optional<uint64_t> tick(Micros now);

  // When the next one is due.
  Micros next_due() const { return due_; }

  // The coordinator answered this heartbeat. Late, repeated and unknown answers do no harm.
  void answered(uint64_t counter, Micros now);

  // When the newest answered heartbeat was sent; kNever before the first. The coordinator heard it
  // after that and removes nobody for silence within suspect_after: an owner that closes a round
  // without somebody counts from here. A pause of the own loop lets this age by itself.
  Micros answered_at() const { return answered_at_; }
  static constexpr Micros kNever = std::numeric_limits<Micros>::min() / 2;

  // answered_at() is not older than suspect_after.
  bool heard(Micros now) const { return now - answered_at_ <= suspect_after_; }

  // Smoothed as in RFC 6298 (SRTT, alpha 1/8); 0 before the first answer.
  Micros round_trip() const { return round_trip_; }

  static void visit(auto& s, auto&& f) {
    f(s.heartbeat_, s.suspect_after_, s.due_, s.counter_, s.open_, s.answered_at_, s.measured_,
      s.round_trip_);
  }
  bool operator==(const Pulse&) const = default;

 private:
  struct Sent {
    uint64_t counter = 0;
    Micros at = 0;
    static void visit(auto& s, auto&& f) { f(s.counter, s.at); }
    bool operator==(const Sent&) const = default;
  };

  Micros heartbeat_;
  Micros suspect_after_;
  Micros due_;
  uint64_t counter_ = 0;
  std::vector<Sent> open_;  // unanswered, not older than suspect_after; ascending
  Micros answered_at_ = kNever;
  bool measured_ = false;
  Micros round_trip_ = 0;
};

}  // namespace hybridsync
