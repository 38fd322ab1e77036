// Where autograd puts gradients: detached views of flat buckets, so that accumulating fills what
// travels.
//
// Between backward passes the parameters' .grad is not the buckets' (it is what the last optimizer
// step used), so zero_grad() in any form, or a replaced .grad, neither loses nor leaks anything.
#pragma once

#include <torch/types.h>

#include <functional>
#include <vector>

#include "hybridsync/sync/gradients.h"
#include "hybridsync/torch/parameters.h"

namespace hybridsync {

class GradientViews {
 public:
  // Sets of buckets; on another device than the CPU, or with `staged`, accumulation happens there
  // and a bucket is copied to the shared memory when it leaves and back when it is reduced.
  GradientViews(const Parameters& parameters, std::vector<Gradients> sets, bool staged);
  ~GradientViews();
  GradientViews(const GradientViews&) = delete;
  GradientViews& operator=(const GradientViews&) = delete;

  // Zeros a set: a window begins.
  void zero(int set);

  // Around one backward pass that accumulates into the set. `scale` multiplies what narrow
  // parameters accumulate. `ready(bucket)` is called, if given, whenever one of the bucket's
  // parameters has its final gradient.
  void attach(int set, double scale, bool unseeded, std::function<void(int bucket)> ready);
  void detach();
  // The gradient with which backward must start from the loss, so that parameters accumulate scale
  // * gradient.
  double seed() const { return through_grad_ ? 1 : scale_; }

  // By parameter, whether any backward pass of this window reached it (since zero()).
  const std::vector<uint8_t>& used(int set) const { return used_[static_cast<size_t>(set)]; }

  // The window's last backward is over: what has not been staged yet is.
  void leave(int set);
  // Gives every parameter with used[i] its gradient from the set's shared memory, in its own type,
  // and the others none: what the optimizer steps with.
  void expose(int set, const std::vector<uint8_t>& used);

 private:
  struct Set {
    Gradients shared;
    at::Tensor flat[2];  // where accumulation happens, by type
    at::Tensor shared_flat[2];
    at::Tensor bounce[2];  // staged: host memory that the device copies to, pinned for a GPU
    std::vector<at::Tensor> views;  // by parameter, with its shape and strides
  };
  void fired(size_t parameter);
  void arrived(int set);
  void stage(Set& set, const Bucket& bucket, bool to_shared) const;
  Set make(const Gradients& shared) const;

  const Parameters& parameters_;
  const bool staged_;
  std::vector<Set> sets_;
  std::vector<std::vector<uint8_t>> used_;
  std::vector<int>
      waiting_;  // by bucket: parameters that have not fired in the last pass; 0: staged
  int set_ = 0;
  double scale_ = 1;
  std::function<void(int)> ready_;
  bool attached_ = false;
  bool through_grad_ = false;  // this pass accumulates by way of .grad, with a factor
};

}  // namespace hybridsync
