// What the report draws of a run: few enough points, nodes merged, loss smoothed. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "hybridsync/observe/step_record.h"

namespace hybridsync {

// One record per step in order: bytes are summed over the nodes; loss, norm and times are means
// over the nodes that recorded the step (of those that are numbers); samples, seconds, rounds are
// the largest. Nodes of a delayed run take their steps at different times: there the steps are
// those of the node that took most, and another node's step belongs to the first of these that
// ended no sooner (after the last one, to the last).
std::vector<StepRecord> merge_nodes(const std::vector<StepRecord>& steps);

// Seconds per step, mean over the steps; the six parts add up to total().
struct TimeByPart {
  double compute = 0, reduce_wait = 0, optimizer = 0, exchange = 0, agree = 0, other = 0;
  double reduce = 0;  // whole duration of the in-node reduction, the hidden part included
  double total() const { return compute + reduce_wait + optimizer + exchange + agree + other; }
};
TimeByPart time_by_part(const std::vector<StepRecord>& merged);

// Debiased exponential mean over about `window` values; NaN is stepped over.
std::vector<double> smoothed(const std::vector<double>& values, double window);

// At most `points` values, each the mean of the numbers of an equal share of the input; as many as
// came in when those are fewer.
std::vector<double> thinned(const std::vector<double>& values, size_t points);

struct Curves {
  // Parallel, at most the asked-for points.
  std::vector<double> step, samples, seconds, bytes, loss, smooth_loss, interval;
  double steps_per_point = 1;
  double smoothing_steps = 1;
  // One per evaluation; bytes are those sent up to its step.
  std::vector<double> eval_step, eval_samples, eval_seconds, eval_bytes, eval_loss, eval_accuracy;
};
Curves curves_of(const std::vector<StepRecord>& merged,
                 const std::vector<EvaluationRecord>& evaluations, size_t points);

}  // namespace hybridsync
