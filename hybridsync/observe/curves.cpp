#include "hybridsync/observe/curves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace hybridsync {

namespace {

// Mean of the numbers among the values given to it; NaN of none.
struct Mean {
  double sum = 0;
  int64_t count = 0;
  void add(double value) {
    if (!std::isfinite(value)) return;
    sum += value;
    ++count;
  }
  double value() const {
    return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
  }
};

constexpr double StepRecord::*kMeans[] = {&StepRecord::loss,
                                          &StepRecord::global_loss,
                                          &StepRecord::lr,
                                          &StepRecord::grad_norm,
                                          &StepRecord::compute_seconds,
                                          &StepRecord::reduce_seconds,
                                          &StepRecord::reduce_wait_seconds,
                                          &StepRecord::optimizer_seconds,
                                          &StepRecord::exchange_seconds,
                                          &StepRecord::agree_seconds,
                                          &StepRecord::other_seconds};

StepRecord merged_step(const std::vector<const StepRecord*>& nodes) {
  StepRecord merged = *nodes[0];
  for (double StepRecord::*field : kMeans) {
    Mean mean;
    for (const StepRecord* r : nodes) mean.add(r->*field);
    merged.*field = mean.value();
  }
  for (size_t i = 1; i < nodes.size(); ++i) {
    const StepRecord& r = *nodes[i];
    merged.samples = std::max(merged.samples, r.samples);
    merged.seconds = std::fmax(merged.seconds, r.seconds);
    merged.rounds = std::max(merged.rounds, r.rounds);
    merged.interval = std::max(merged.interval, r.interval);
    merged.skipped = merged.skipped || r.skipped;
    merged.bytes_fast += r.bytes_fast;
    merged.bytes_sent_slow += r.bytes_sent_slow;
    merged.bytes_received_slow += r.bytes_received_slow;
  }
  return merged;
}

template <class Value>
std::vector<double> column(const std::vector<StepRecord>& steps, Value value) {
  std::vector<double> values;
  values.reserve(steps.size());
  for (const StepRecord& r : steps) values.push_back(value(r));
  return values;
}

double bytes_up_to(const std::vector<double>& steps, const std::vector<double>& bytes,
                   int64_t step) {
  const auto after = std::upper_bound(steps.begin(), steps.end(), static_cast<double>(step));
  return after == steps.begin() ? 0 : bytes[after - steps.begin() - 1];
}

void add_evaluations(Curves& curves, const std::vector<EvaluationRecord>& evaluations,
                     const std::vector<double>& steps, const std::vector<double>& bytes) {
  for (const EvaluationRecord& e : evaluations) {
    curves.eval_step.push_back(static_cast<double>(e.step));
    curves.eval_samples.push_back(static_cast<double>(e.samples));
    curves.eval_seconds.push_back(e.seconds);
    curves.eval_bytes.push_back(bytes_up_to(steps, bytes, e.step));
    curves.eval_loss.push_back(e.loss);
    curves.eval_accuracy.push_back(e.accuracy);
  }
}

// A node's second line of one step: the round with which it left.
void add_closing(StepRecord& step, const StepRecord& closing) {
  for (double StepRecord::*seconds :
       {&StepRecord::compute_seconds, &StepRecord::reduce_seconds, &StepRecord::reduce_wait_seconds,
        &StepRecord::optimizer_seconds, &StepRecord::exchange_seconds, &StepRecord::agree_seconds,
        &StepRecord::other_seconds})
    step.*seconds += closing.*seconds;
  for (int64_t StepRecord::*bytes :
       {&StepRecord::bytes_fast, &StepRecord::bytes_sent_slow, &StepRecord::bytes_received_slow})
    step.*bytes += closing.*bytes;
  step.seconds = closing.seconds;
  step.samples = closing.samples;
  step.rounds = closing.rounds;
}

using ByNode = std::map<std::pair<int64_t, int>, StepRecord>;  // by step and node
using ByStep = std::map<int64_t, std::vector<const StepRecord*>>;

ByStep at_equal_steps(const ByNode& by_node) {
  ByStep by_step;
  for (const auto& [key, r] : by_node) by_step[r.step].push_back(&r);
  return by_step;
}

ByStep at_equal_times(const ByNode& by_node) {
  ByStep by_step;
  std::vector<const StepRecord*> leading;  // the steps of one node
  if (by_node.empty()) return by_step;
  const int leader = by_node.rbegin()->second.node;
  for (const auto& [key, r] : by_node) {
    if (r.node != leader) continue;
    leading.push_back(&r);
    by_step[r.step].push_back(&r);
  }
  const auto sooner = [](const StepRecord* a, double seconds) { return a->seconds < seconds; };
  for (const auto& [key, r] : by_node) {
    if (r.node == leader) continue;
    auto at = std::lower_bound(leading.begin(), leading.end(), r.seconds, sooner);
    if (at == leading.end()) --at;
    by_step[(*at)->step].push_back(&r);
  }
  return by_step;
}

bool delayed(const StepRecord& r) { return r.mode == "delayed"; }

}  // namespace

std::vector<StepRecord> merge_nodes(const std::vector<StepRecord>& steps) {
  ByNode by_node;
  for (const StepRecord& r : steps) {
    const auto [at, is_first] = by_node.try_emplace({r.step, r.node}, r);
    if (!is_first) add_closing(at->second, r);
  }
  const bool lags = std::any_of(steps.begin(), steps.end(), delayed);
  const ByStep by_step = lags ? at_equal_times(by_node) : at_equal_steps(by_node);
  std::vector<StepRecord> merged;
  merged.reserve(by_step.size());
  for (const auto& [step, nodes] : by_step) merged.push_back(merged_step(nodes));
  return merged;
}

TimeByPart time_by_part(const std::vector<StepRecord>& merged) {
  const auto mean = [&](double StepRecord::*field) {
    Mean m;
    for (const StepRecord& r : merged) m.add(r.*field);
    return m.count > 0 ? m.value() : 0;
  };
  return {mean(&StepRecord::compute_seconds),   mean(&StepRecord::reduce_wait_seconds),
          mean(&StepRecord::optimizer_seconds), mean(&StepRecord::exchange_seconds),
          mean(&StepRecord::agree_seconds),     mean(&StepRecord::other_seconds),
          mean(&StepRecord::reduce_seconds)};
}

std::vector<double> smoothed(const std::vector<double>& values, double window) {
  const double keep = 1 - 2 / (std::max(window, 1.0) + 1);
  double sum = 0, weight = 0;
  std::vector<double> result;
  result.reserve(values.size());
  for (double value : values) {
    if (std::isfinite(value)) {
      sum = keep * sum + (1 - keep) * value;
      weight = keep * weight + (1 - keep);
    }
    result.push_back(weight > 0 ? sum / weight : std::numeric_limits<double>::quiet_NaN());
  }
  return result;
}

std::vector<double> thinned(const std::vector<double>& values, size_t points) {
  if (values.size() <= points) return values;
  std::vector<double> result;
  result.reserve(points);
  for (size_t i = 0; i < points; ++i) {
    Mean mean;
    const size_t end = (i + 1) * values.size() / points;
    for (size_t j = i * values.size() / points; j < end; ++j) mean.add(values[j]);
    result.push_back(mean.value());
  }
  return result;
}

Curves curves_of(const std::vector<StepRecord>& merged,
                 const std::vector<EvaluationRecord>& evaluations, size_t points) {
  const auto steps = column(merged, [](const StepRecord& r) { return double(r.step); });
  const auto loss = column(merged, [](const StepRecord& r) { return r.loss; });
  double sent = 0;
  const auto bytes =
      column(merged, [&](const StepRecord& r) { return sent += double(r.bytes_sent_slow); });
  const auto thin = [&](auto value) { return thinned(column(merged, value), points); };

  Curves c;
  c.steps_per_point = std::max(1.0, double(merged.size()) / double(points));
  c.smoothing_steps = std::max(1.0, std::round(double(merged.size()) / 50));
  c.step = thinned(steps, points);
  c.samples = thin([](const StepRecord& r) { return double(r.samples); });
  c.seconds = thin([](const StepRecord& r) { return r.seconds; });
  c.bytes = thinned(bytes, points);
  c.loss = thinned(loss, points);
  c.smooth_loss = thinned(smoothed(loss, c.smoothing_steps), points);
  c.interval = thin([](const StepRecord& r) { return double(r.interval); });
  add_evaluations(c, evaluations, steps, bytes);
  return c;
}

}  // namespace hybridsync
