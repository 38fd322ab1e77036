// Does the loss go on falling as it did? The newest 4 rounds against the line through the 8 before
// them, of the loss over the logarithm of the samples:
//
//   behind:  mean(newest) > end - (end - line(newest)) / 2 + 2 e
//
// with `end` where the line is at the last of the 8. Half of the fall is enough: a loss falls ever
// more slowly, so a straight line asks too much of it. e is the standard error of the difference,
// from the scatter s of the 8 about their line:
//
//   e^2 = s^2 (1/4 + 1/8 + (x(newest) - mean x)^2 / sum (x - mean x)^2),   s^2 = sum r^2 / 6
//
// Before 12 rounds nothing is known.
#pragma once

#include <cstdint>
#include <vector>

namespace hybridsync {

class LossTrend {
 public:
  static constexpr int64_t kNewest = 4, kBefore = 8;

  // A round's loss, after so many samples in all; rounds that bring no samples do not count.
  void add(int64_t total_samples, double loss);

  enum class Verdict { unknown, keeps_up, behind };
  struct Finding {
    Verdict verdict = Verdict::unknown;
    double loss = 0;   // of the newest rounds
    double bound = 0;  // what it must not exceed
  };
  Finding finding() const;

  static void visit(auto& s, auto&& f) { f(s.rounds_); }
  bool operator==(const LossTrend&) const = default;

 private:
  struct Round {
    int64_t samples = 0;
    double loss = 0;
    static void visit(auto& s, auto&& f) { f(s.samples, s.loss); }
    bool operator==(const Round&) const = default;
  };
  std::vector<Round> rounds_;  // the newest, in order
};

}  // namespace hybridsync
