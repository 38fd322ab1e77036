// A LibTorch model and its optimizer, as the synchronizer sees them.
#pragma once

#include <torch/optim/optimizer.h>

#include <optional>
#include <vector>

#include "hybridsync/sync/replica.h"
#include "hybridsync/torch/batch_norm.h"
#include "hybridsync/torch/given_momentum.h"
#include "hybridsync/torch/gradient_views.h"
#include "hybridsync/torch/optimizer_moments.h"
#include "hybridsync/torch/parameters.h"

namespace hybridsync {

class ModuleReplica final : public Replica {
 public:
  // All must outlive it. Throws ConfigError when the optimizer has a parameter that the model has
  // not, or needs a closure.
  // `second_moment_floor`: as the configuration has it.
  ModuleReplica(const Parameters& parameters, torch::optim::Optimizer& optimizer,
                BatchNorm& batch_norm, double second_moment_floor = 0);
  // Gradients exist only when the buckets do, and those need the parameters.
  void use(GradientViews& views) { views_ = &views; }

  void read(const Fragment& f, Values out) const override { parameters_.read(f, out); }
  void write(const Fragment& f, ConstValues values) override { parameters_.write(f, values); }
  void round(const Fragment& f, Values values) const override { parameters_.round(f, values); }
  double optimizer_step(int set, double lr_factor, const SideData& agreed) override;
  void begin_momentum_pull() override;
  void pull_momentum(std::span<const Fragment> ranges, ConstValues mean_delta,
                     double share) override;
  SenderMomentum take_momentum() override;
  void advance_statistics(const std::vector<Moments>& window) override;
  SideData running_statistics(double weight) const override;
  void set_running_statistics(const SideData& side) override;

  // The learning rate of each parameter group as the user set it.
  std::vector<double> base_rates() const;

  // Throws ConfigError when parameters were frozen, unfrozen, or given to the optimizer since
  // construction.
  void check_unchanged() const;

 private:
  const Parameters& parameters_;
  torch::optim::Optimizer& optimizer_;
  BatchNorm& batch_norm_;
  std::optional<GivenMomentum> given_;
  GradientViews* views_ = nullptr;
  size_t optimizer_parameters_ = 0;
  OptimizerMoments moments_;
};

}  // namespace hybridsync
