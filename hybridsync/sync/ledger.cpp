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
  decayed_squared_norm += o.decayed_squared_norm;
  for (size_t age = 0; age < o.ages.size(); ++age) at(ages, age) += o.ages[age];
  for (size_t node = 0; node < o.skipped.size(); ++node) at(skipped, node) += o.skipped[node];
  mismatches += o.mismatches;
  rounds += o.rounds;
  return *this;
}

}  // namespace hybridsync
