// Faults of a simulated run, from a file or from a seed.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "hybridsync/decide/time.h"

namespace hybridsync {

enum class FaultKind {
  crash,      // the process is killed: its connections break
  power_off,  // the machine is gone: silence
  freeze,     // the process stands still; what arrives waits
  cut,        // nothing passes between two nodes, and nobody is told
  broken,     // the same, and both are told that their connection broke
  partition,  // nothing passes between these nodes and the others, silently
  slow,       // steps take `factor` times as long
  drift,      // the clock gains `factor` parts of a million, or loses them
  busy,       // an evaluation or a checkpoint: no steps, and the rounds know it
  finish,     // the node has no more data
  leave,      // the node goes in order
};
inline constexpr std::array<std::string_view, 11> kFaultNames = {
    "crash", "power_off", "freeze", "cut",    "broken", "partition",
    "slow",  "drift",     "busy",   "finish", "leave"};
std::string_view name(FaultKind kind);

struct Fault {
  Micros at = 0;
  FaultKind kind = FaultKind::crash;
  std::vector<int> nodes;  // that it hits: two of cut and broken, one side of partition, else one
  double factor = 1;       // slow, drift
  Micros lasts = 0;        // then it ends (a crashed node starts again); 0: it does not
  bool operator==(const Fault&) const = default;
};

// "2.5 s: crash of node 1 for 500 ms", "1 s: freeze of node 2 for good"
std::string to_text(const Fault& fault);

// TOML with one [[fault]] per fault, in any order of time:
//   [[fault]]
//   at = "2 s"
//   kind = "crash"
//   node = 1
//   for = "500 ms"
// The result is sorted by time. Throws ConfigError with file, line and key.
std::vector<Fault> parse_faults(std::string_view text, const std::string& name, int nodes);
std::vector<Fault> load_faults(const std::string& path, int nodes);

}  // namespace hybridsync
