#include "hybridsync/sync/wires.h"

#include <cstring>
#include <stdexcept>

#include "hybridsync/config/error.h"

namespace hybridsync {

Wires connect(const Config& config, const Environment& environment, const Patience& patience) {
  Patience limited = patience;
  limited.limit = std::chrono::milliseconds(static_cast<int64_t>(1e3 * config.node_tier().timeout));
  Wires wires;
  wires.rendezvous =
      std::make_unique<Rendezvous>(environment.rendezvous, environment.run_id, environment.rank,
                                   environment.world_size, limited);
  wires.memory = make_node_memory(environment.run_id, environment.node, environment.local_rank,
                                  environment.local_world_size, limited);
  wires.group = make_shm_group(*wires.memory, limited);
  return wires;
}

void require(const Outcome& outcome) {
  if (outcome.ok()) return;
  if (outcome.kind == Outcome::Kind::interrupted) throw Interrupted(outcome.why);
  throw RunEnded(outcome.why);
}

std::vector<Bytes> gather(Group& group, ByteSpan mine, size_t capacity) {
  const uint64_t length = mine.size();
  if (length > capacity) throw std::logic_error("a report is larger than its room");
  const size_t stride = sizeof length + capacity;
  Bytes padded(stride);
  std::memcpy(padded.data(), &length, sizeof length);
  std::memcpy(padded.data() + sizeof length, mine.data(), length);
  Bytes all(stride * static_cast<size_t>(group.size()));
  require(group.all_gather(padded, all));
  std::vector<Bytes> parts;
  for (size_t at = 0; at < all.size(); at += stride) {
    uint64_t n = 0;
    std::memcpy(&n, all.data() + at, sizeof n);
    const auto begin = all.begin() + static_cast<ptrdiff_t>(at + sizeof n);
    parts.emplace_back(begin, begin + static_cast<ptrdiff_t>(n));
  }
  return parts;
}

}  // namespace hybridsync
