// What rounds do to an optimizer's own state: they pull its momentum towards what all nodes did,
// and its second moments have a floor. Adam, AdamW and SGD with momentum.
#pragma once

#include <torch/optim/optimizer.h>

#include <map>
#include <span>
#include <vector>

#include "hybridsync/torch/parameters.h"

namespace hybridsync {

class OptimizerMoments {
 public:
  // Both must outlive it. `floor`: of Adam's second moments, as a part of their tensor's mean.
  OptimizerMoments(const Parameters& parameters, torch::optim::Optimizer& optimizer, double floor);

  // After every optimizer step, while its learning rates are set.
  void stepped();

  // As Replica has them.
  void begin_pull();
  void pull(std::span<const Fragment> ranges, ConstValues mean_delta, double share);

 private:
  using Rates = std::vector<double>;  // by parameter group: sums of learning rates
  void pull(const Parameters::Part& part, const at::Tensor& mean_delta, double share,
            const Rates& rates);

  const Parameters& parameters_;
  torch::optim::Optimizer& optimizer_;
  const double floor_;
  std::map<c10::TensorImpl*, size_t> groups_;  // of every parameter
  Rates rates_;                                // since begin_pull
  std::map<int, Rates> before_;                // by fragment: at its last pull
};

}  // namespace hybridsync
