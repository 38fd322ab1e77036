// Collectives among ranks that are all healthy and near each other. All or nothing: with a member
// missing, a collective ends with an outcome that names it, and the group is of no further use.
//
// Every rank calls the same collectives in the same order. A group is used by one thread at a time.
// Results have the same bits on every rank and in every run: sums are taken in rank order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "hybridsync/math/values.h"
#include "hybridsync/wire/node_memory.h"
#include "hybridsync/wire/wait.h"

namespace hybridsync {

class Group {
 public:
  virtual ~Group() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // values := sum over ranks, in place, same length and type on every rank. Nothing is copied when
  // the span lies in this rank's slot of the node's memory, at the same place on every rank.
  virtual Outcome all_reduce(Values values) = 0;
  // all := every rank's `mine` in rank order; all.size() == size() * mine.size().
  virtual Outcome all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  // bytes := root's bytes.
  virtual Outcome broadcast(std::span<std::byte> bytes, int root) = 0;
  virtual Outcome barrier() = 0;

  // What the collectives that follow are for: messages say this instead of the operation, until the
  // next call (empty: the operation again). Unlimited ones wait for living ranks as long as it
  // takes. The same on every rank.
  virtual void set_phase(std::string phase, bool limited) = 0;

  // Bytes this rank contributed to collectives with others so far (payload, not copies), and how
  // many collectives.
  struct Counters {
    int64_t bytes = 0;
    int64_t collectives = 0;
    int64_t reductions = 0;  // all_reduce calls
  };
  virtual Counters counters() const = 0;
};

// Over the node's shared memory, which must outlive the group. Waits follow `patience`; its limit
// must be set. Collective, as it allocates in `memory`.
std::unique_ptr<Group> make_shm_group(NodeMemory& memory, Patience patience);

}  // namespace hybridsync
