#include "hybridsync/decide/lineage.h"

#include <algorithm>

#include "hybridsync/decide/digest.h"
#include "hybridsync/decide/planted.h"

namespace hybridsync {
namespace {

const Applied* find(const std::vector<Applied>& all, int node) {
  const auto at = std::find_if(all.begin(), all.end(),
                               [&](const Applied& a) { return a.process.node == node; });
  return at == all.end() ? nullptr : &*at;
}

Applied& place_for(std::vector<Applied>& all, const Process& process) {
  auto at = std::find_if(all.begin(), all.end(),
                         [&](const Applied& a) { return a.process.node >= process.node; });
  if (at == all.end() || at->process.node != process.node)
    at = all.insert(at, Applied{process, 1, {}});
  if (at->process != process) *at = Applied{process, 1, {}};
  return *at;
}

void note(Applied& applied, uint64_t sequence, uint64_t settled) {
  auto& above = applied.above;
  above.insert(std::lower_bound(above.begin(), above.end(), sequence), sequence);
  applied.settled = std::max(applied.settled, settled);
  above.erase(above.begin(), std::lower_bound(above.begin(), above.end(), applied.settled));
}

}  // namespace

bool Lineage::holds(const Process& process, uint64_t sequence) const {
  const Applied* found = find(applied, process.node);
  if (!found) return false;
  if (found->process != process && !planted(Bug::no_incarnation)) return false;
  return sequence < found->settled ||
         std::binary_search(found->above.begin(), found->above.end(), sequence);
}

bool Lineage::outdated(const Process& process) const {
  const Applied* found = find(applied, process.node);
  return found && found->process.incarnation > process.incarnation;
}

void Lineage::extend(const Result& result) {
  chain = next_chain(result);
  version = result.version;
  if (result.mode == Mode::delta && result.weight > 0) anchor = result.after;
  mode = result.next_mode;
  interval = result.next_interval;
  total_samples = result.total_samples;
  finished = result.finished;
  for (const RosterEntry& e : result.roster)
    note(place_for(applied, {e.node, e.incarnation}), e.sequence, e.settled);
}

uint64_t next_chain(const Result& r) {
  return Digest()
      .add(r.chain, r.version, r.epoch, r.mode, r.roster, r.samples, r.before, r.after,
           r.next_interval, r.finished)
      .value();
}

}  // namespace hybridsync
