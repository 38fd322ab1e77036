#include "hybridsync/decide/loss_trend.h"

#include <algorithm>
#include <cmath>

namespace hybridsync {
namespace {

struct Point {
  double x = 0, y = 0;
};

Point mean_of(const std::vector<Point>& points, size_t from, size_t to) {
  Point mean;
  for (size_t i = from; i < to; ++i) mean.x += points[i].x, mean.y += points[i].y;
  const auto count = static_cast<double>(to - from);
  return {mean.x / count, mean.y / count};
}

}  // namespace

void LossTrend::add(int64_t total_samples, double loss) {
  if (!std::isfinite(loss) || total_samples <= 0) return;
  if (!rounds_.empty() && total_samples <= rounds_.back().samples) return;
  if (rounds_.size() == kNewest + kBefore) rounds_.erase(rounds_.begin());
  rounds_.push_back({total_samples, loss});
}

LossTrend::Finding LossTrend::finding() const {
  constexpr auto kFirst = static_cast<size_t>(kBefore);
  if (rounds_.size() < kNewest + kBefore) return {};
  std::vector<Point> points;
  for (const Round& r : rounds_) points.push_back({std::log(double(r.samples)), r.loss});
  const Point before = mean_of(points, 0, kFirst);
  const Point newest = mean_of(points, kFirst, points.size());
  double spread = 0, product = 0, scatter = 0;
  for (size_t i = 0; i < kFirst; ++i) {
    spread += (points[i].x - before.x) * (points[i].x - before.x);
    product += (points[i].x - before.x) * (points[i].y - before.y);
  }
  const double slope = product / spread;
  const auto line = [&](double x) { return before.y + slope * (x - before.x); };
  for (size_t i = 0; i < kFirst; ++i) {
    const double rest = points[i].y - line(points[i].x);
    scatter += rest * rest / (kBefore - 2);
  }
  const double far = newest.x - before.x;
  const double error = std::sqrt(scatter * (1.0 / kNewest + 1.0 / kBefore + far * far / spread));
  const double end = line(points[kFirst - 1].x);
  const double fall = std::max(0.0, end - line(newest.x));
  const double bound = end - fall / 2 + 2 * error;
  return {newest.y > bound ? Verdict::behind : Verdict::keeps_up, newest.y, bound};
}

}  // namespace hybridsync
