// The quadratic synchronisation rule (Gu, Lyu, Arora, Zhang and Huang, "A quadratic synchronization
// rule for distributed deep learning", ICLR 2024):
//
//   K = max(every_min, floor((alpha / lr)^2)),   alpha = sqrt(every) * the peak of lr
//
// so that K = `every` at the peak. The peak is the largest learning rate so far, which makes K =
// `every` during a warm-up, as in the paper.
#pragma once

#include "hybridsync/decide/round_facts.h"

namespace hybridsync {

class QsrInterval {
 public:
  [[nodiscard]] Wish next(const RoundFacts& facts);

  static void visit(auto& s, auto&& f) { f(s.first_, s.peak_); }
  bool operator==(const QsrInterval&) const = default;

 private:
  int64_t first_ = 0;  // K as it began; 0: no learning rate yet
  double peak_ = 0;
};

}  // namespace hybridsync
