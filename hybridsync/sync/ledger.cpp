#include "hybridsync/sync/ledger.h"

namespace hybridsync {

Ledger& Ledger::operator+=(const Ledger& o) {
  contributed += o.contributed;
  applied += o.applied;
  returned += o.returned;
  dropped += o.dropped;
  restored += o.restored;
  lost += o.lost;
  lost_squared_norm += o.lost_squared_norm;
  if (ages.size() < o.ages.size()) ages.resize(o.ages.size());
  for (size_t age = 0; age < o.ages.size(); ++age) ages[age] += o.ages[age];
  for (const auto& [node, times] : o.skipped) skipped[node] += times;
  mismatches += o.mismatches;
  rounds += o.rounds;
  return *this;
}

}  // namespace hybridsync
