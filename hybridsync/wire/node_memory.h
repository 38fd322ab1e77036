// Memory that the ranks of one node share. Gradient buckets and anchors live in it, so that a
// reduction or a read of the anchor copies nothing.
//
// The ranks find each other at an abstract Unix socket named after (run id, node): rank 0 listens,
// the others connect and keep the connection; processes of another user are turned away. Each
// allocation is one memfd that rank 0 creates and hands to the others over these connections, so
// nothing is left behind in any file system, however the processes end, and /dev/shm needs no
// space.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "hybridsync/wire/wait.h"

namespace hybridsync {

class NodeMemory {
 public:
  virtual ~NodeMemory() = default;

  virtual int rank() const = 0;  // in the node
  virtual int size() const = 0;
  virtual int node() const = 0;
  virtual int pid(int rank) const = 0;  // of the process of that rank, as seen by rank 0

  // Collective: every rank calls the allocations in the same order with the same sizes; a rank that
  // asks for another size makes it throw on all with both sizes. Memory is zeroed, aligned to 64
  // bytes, and lives as long as this object. Throws RunEnded when a peer is gone or silent past the
  // limit, and Interrupted; after either, every later allocation throws RunEnded at once. One
  // thread at a time.
  //
  // One slot per rank: `slot(r)` is rank r's.
  struct Slots {
    std::byte* base = nullptr;
    size_t stride = 0;  // bytes from one rank's slot to the next
    size_t bytes = 0;   // usable in each
    int id = 0;         // in order of allocation, the same on every rank
    std::span<std::byte> slot(int rank) const {
      return {base + static_cast<size_t>(rank) * stride, bytes};
    }
  };
  virtual Slots allocate_slots(size_t bytes) = 0;
  // One copy that all ranks see.
  virtual std::span<std::byte> allocate_common(size_t bytes) = 0;

  // The slots that hold this address in this rank's own slot, or null: how a Group finds the same
  // place in the other ranks' slots.
  virtual const Slots* find(const std::byte* address) const = 0;

  // Whether the process of that rank still lives (itself: always). Cheap, callable from any thread.
  virtual bool alive(int rank) const = 0;
};

// Blocks until all `size` ranks of the node are there; with size 1 it needs no peers and no run id.
// Ranks may be threads of one process; they then see the memory at the same addresses. The run id
// has at most 64 bytes. Throws RunEnded past the limit and names who is missing; ConfigError when
// this rank is out of range, taken, or of another size than rank 0 says.
std::unique_ptr<NodeMemory> make_node_memory(const std::string& run_id, int node, int rank,
                                             int size, const Patience& patience);

}  // namespace hybridsync
