// Batch-norm running statistics advance once per window, from the merged statistics of all its
// micro-batches.
//
// Each forward pass normalises with its own micro-batch, as torch does; only the running statistics
// are taken over. What a micro-batch's statistics were is read from the autograd graph of its loss
// (every call of a layer is there with its mean and inverse deviation), so models need no change
// and may call a layer several times.
#pragma once

#include <torch/types.h>

#include <optional>
#include <string>
#include <vector>

#include "hybridsync/config/config.h"
#include "hybridsync/math/batch_stats.h"
#include "hybridsync/sync/side_data.h"

namespace torch::nn {
class Module;
}

namespace hybridsync {

class BatchNorm {
 public:
  // Finds the BatchNorm1d/2d/3d layers that track running statistics.
  BatchNorm(torch::nn::Module& model, RunningStats policy);

  // Around the backward pass of one micro-step with so many samples: reads the statistics that made
  // this loss, and afterwards puts the running statistics back to what they were at the window's
  // start. Throws ConfigError for a layer whose statistics cannot be seen: in training mode, with
  // neither trainable weights nor an input that needs a gradient.
  void before_backward(const at::Tensor& loss);
  void after_backward(double samples);

  // The window's statistics so far, by layer; reset() starts the next window's. With
  // per_micro_batch: the running ones, weighted by the window's samples.
  std::vector<Moments> window() const;
  void reset();

  // From the merged statistics of all ranks; layers with count 0 stay.
  void advance(const std::vector<Moments>& merged);

  std::vector<Moments> running(double weight) const;
  std::vector<int64_t> batches_tracked() const;
  void set_running(const std::vector<Moments>& running,
                   const std::vector<int64_t>& batches_tracked);

 private:
  struct Layer {
    std::string name;
    at::Tensor mean, var, batches;
    std::optional<double> momentum;
    bool has_trainable_weight = false;
    RunningMoments running;  // in double, between windows
    Moments window;
  };
  template <class Impl>
  bool add(const std::string& name, torch::nn::Module& module);
  Layer* find(const at::Tensor& running_mean);
  void capture(Layer& layer, const at::Tensor& input, const at::Tensor& mean,
               const at::Tensor& invstd, double eps);
  void visit(const at::Tensor& loss);
  void load(Layer& layer);
  void store(Layer& layer);

  RunningStats policy_;
  std::vector<Layer> layers_;
  std::vector<int> captures_;  // by layer, of this micro-step
  double samples_ = 0;
};

}  // namespace hybridsync
