// What the synchronizer needs from a framework: numbers in and out of a model, and one optimizer
// step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hybridsync/decide/fragments.h"
#include "hybridsync/math/values.h"
#include "hybridsync/sync/sender_momentum.h"
#include "hybridsync/sync/side_data.h"

namespace hybridsync {

// Called from the training thread, between micro-steps only.
class Replica {
 public:
  virtual ~Replica() = default;

  // A fragment of the parameters, in the flat order of the gradients.
  virtual void read(const Fragment& fragment, Values out) const = 0;
  virtual void write(const Fragment& fragment, ConstValues values) = 0;
  // In place: what read() would give after write(values); the identity unless parameters are
  // narrower than the core.
  virtual void round(const Fragment& fragment, Values values) const = 0;

  // One optimizer step with the gradients as they lie in set `set` of the buckets. Parameters with
  // used[i] == 0 got no gradient on any rank and stay untouched, weight decay included. `lr_factor`
  // multiplies the base learning rates. Returns the learning rate of the first group.
  // agreed.rates: the base learning rate of each parameter group, agreed on by the ranks; not a
  // number where none of them had a part in this step, and then this rank's own holds.
  virtual double optimizer_step(int set, double lr_factor, const SideData& agreed) = 0;

  // From now on learning rates are summed up for pull_momentum. Throws ConfigError when the
  // optimizer has no momentum that could be moved.
  virtual void begin_momentum_pull() = 0;
  // Of the numbers in these flat ranges, one fragment's: m = (1 - share) m + share * (the momentum
  // that would have made the step -mean_delta over the steps since the fragment's last call). With
  // Adam that is mean_delta den / sum(lr) for its denominator den = sqrt(v) + eps, bias corrected;
  // with SGD den = 1. mean_delta: anchor minus parameters, in the order of the ranges. A parameter
  // that the optimizer has not stepped yet stays as it is.
  virtual void pull_momentum(std::span<const Fragment> ranges, ConstValues mean_delta,
                             double share) = 0;
  // Gives away the optimizer's momentum: from now on the gradients that it gets hold that already.
  // Weight decay stays what it was. Throws ConfigError where the optimizer has none to give.
  virtual SenderMomentum take_momentum() { return {}; }

  // Batch-norm statistics: a window's merged ones advance the running ones, once.
  virtual void advance_statistics(const std::vector<Moments>& window) = 0;
  // The running ones, each with this weight, and back.
  virtual SideData running_statistics(double weight) const = 0;
  virtual void set_running_statistics(const SideData& side) = 0;
};

}  // namespace hybridsync
