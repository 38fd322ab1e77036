// A mean that follows: of the first few values the plain one, then each counts a fourth.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hybridsync {

class Smooth {
 public:
  static constexpr int64_t kWindow = 4;

  void add(double value) {
    count_ = std::min(count_ + 1, kWindow);
    value_ += (value - value_) / static_cast<double>(count_);
  }
  void restart() { *this = {}; }
  bool full() const { return count_ == kWindow; }
  double value() const { return value_; }  // 0: of nothing

  static void visit(auto& s, auto&& f) { f(s.count_, s.value_); }
  bool operator==(const Smooth&) const = default;

 private:
  int64_t count_ = 0;
  double value_ = 0;
};

}  // namespace hybridsync
