// A simulated node: a clock, a disk, and the process that runs on it now, made of the same parts as
// a rank of a real run.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "hybridsync/simulate/training.h"
#include "hybridsync/simulate/virtual_clock.h"
#include "hybridsync/sync/lane.h"

namespace hybridsync {

// A process. Its parts refer to each other, so it stays where it is.
struct VirtualProcess {
  VirtualProcess(const Scenario& scenario, const Process& self, Oracle& oracle, Random random,
                 Lane::SendFunction send);

  Desk desk;
  Lane lane;
  Training training;
  bool started = false;  // trains; a process that joins waits until it has everything
  bool computing = false;
  int busy = 0;       // with so many things
  bool over = false;  // its training
  bool look_planned = false;
  bool work = false;  // for the comm side
};

struct VirtualNode {
  int number = 0;
  VirtualClock clock{0, 0};
  Micros step = 0;
  double unevenness = 0;
  double slowness = 1;
  int freezes = 0;
  bool no_more_data = false;
  bool leaving = false;
  uint32_t incarnation = 0;
  uint64_t life = 0;  // counts processes and their ends: what was meant for one is not for the next
  std::optional<View> disk;                 // the coordinator's
  std::unique_ptr<VirtualProcess> process;  // none: it is down
  std::optional<Micros> tick_at;            // on the simulation's clock

  // What was seen of its seats after the last event, to look closer only at what changed.
  struct Seen {
    uint64_t chain = 0;
    Epoch ready_epoch = 0;
    bool ready = false;
    bool operator==(const Seen&) const = default;
  };
  std::vector<Seen> seen;  // by fragment
};

// Whether this scenario's nodes send heartbeats, and so have a coordinator.
bool has_coordinator(const Scenario& scenario);

}  // namespace hybridsync
