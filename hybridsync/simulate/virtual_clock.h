// A node's own clock in the simulator: it starts anywhere and runs a little fast or slow.
#pragma once

#include "hybridsync/decide/time.h"

namespace hybridsync {

class VirtualClock {
 public:
  // `parts`: of a million that it gains per second; more than -1,000,000.
  VirtualClock(Micros start, int64_t parts) : shown_(start), parts_(parts) {}

  // What it shows at this moment of the simulation, not before the last change of its rate.
  Micros shows(Micros moment) const {
    const Micros passed = moment - since_;
    return shown_ + passed + passed * parts_ / kMillion;
  }
  // The first moment at which it shows this, not before `now`.
  Micros when(Micros shown, Micros now) const {
    Micros moment = since_ + (shown - shown_) * kMillion / (kMillion + parts_);
    while (shows(moment) < shown) ++moment;
    return moment > now ? moment : now;
  }
  void set_rate(int64_t parts, Micros now) {
    shown_ = shows(now);
    since_ = now;
    parts_ = parts;
  }

 private:
  static constexpr int64_t kMillion = 1'000'000;
  Micros since_ = 0;
  Micros shown_;
  int64_t parts_;
};

}  // namespace hybridsync
