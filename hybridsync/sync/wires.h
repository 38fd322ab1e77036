// The wires of one rank: where ranks find each other, what its node shares, and the group of its
// node.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hybridsync/config/config.h"
#include "hybridsync/config/environment.h"
#include "hybridsync/wire/group.h"
#include "hybridsync/wire/node_memory.h"
#include "hybridsync/wire/rendezvous.h"

namespace hybridsync {

struct Wires {
  std::unique_ptr<Rendezvous> rendezvous;
  std::unique_ptr<NodeMemory> memory;
  std::unique_ptr<Group> group;  // uses the memory: destroyed first
};

// Meets the other ranks. Throws RunEnded when one does not come within the node tier's timeout.
Wires connect(const Config& config, const Environment& environment, const Patience& patience);

// Throws RunEnded or Interrupted unless the outcome is good.
void require(const Outcome& outcome);

// Every rank's bytes, of any lengths up to `capacity`, the same on all ranks. Throws like
// require().
std::vector<Bytes> gather(Group& group, ByteSpan mine, size_t capacity);

}  // namespace hybridsync
