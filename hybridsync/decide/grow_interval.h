// K doubles at equal parts of training, from `every` to `every_max`:
//
//   K = min(every_max, every * 2^floor(p (n + 1))),   n = ceil(log2(every_max / every))
//
// p: the part of the planned samples that is done. K never shrinks.
#pragma once

#include "hybridsync/decide/round_facts.h"

namespace hybridsync {

class GrowInterval {
 public:
  GrowInterval(int64_t first, int64_t most) : first_(first), most_(most) {}

  [[nodiscard]] Wish next(const RoundFacts& facts) const;

  static void visit(auto&, auto&&) {}  // it has no state
  bool operator==(const GrowInterval&) const = default;

 private:
  int64_t first_;
  int64_t most_;
};

}  // namespace hybridsync
