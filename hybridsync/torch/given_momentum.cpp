#include "hybridsync/torch/given_momentum.h"

#include <torch/optim/sgd.h>

#include <string>
#include <vector>

#include "hybridsync/config/error.h"

namespace hybridsync {
namespace {

using torch::optim::SGDOptions;

SGDOptions& options_of(torch::optim::OptimizerParamGroup& group) {
  return static_cast<SGDOptions&>(group.options());
}

[[noreturn]] void refuse(const std::string& why) {
  throw ConfigError("tier[1].momentum_correction = true: " + why +
                    "; set momentum_correction = false");
}

SenderMomentum momentum_of(torch::optim::Optimizer& optimizer) {
  if (!dynamic_cast<torch::optim::SGD*>(&optimizer))
    refuse("moves the momentum of torch's SGD to the nodes that send, and this optimizer is none");
  SenderMomentum first;
  for (size_t g = 0; g < optimizer.param_groups().size(); ++g) {
    const SGDOptions& o = options_of(optimizer.param_groups()[g]);
    if (o.dampening() != 0)
      refuse("needs SGD without dampening, and its group " + std::to_string(g) + " has some");
    if (g == 0) first = {o.momentum(), o.nesterov()};
    if (o.momentum() != first.factor || o.nesterov() != first.nesterov)
      refuse("needs one momentum for all of SGD's groups, and group " + std::to_string(g) +
             " has another one than group 0");
  }
  return first;
}

// Both 0 for its life: also when the optimizer throws the user's own come back.
class Without {
 public:
  explicit Without(torch::optim::Optimizer& optimizer) : optimizer_(optimizer) {
    for (auto& group : optimizer.param_groups()) {
      SGDOptions& o = options_of(group);
      own_.emplace_back(o.momentum(), o.weight_decay());
      o.momentum(0).weight_decay(0);
    }
  }
  ~Without() {
    for (size_t g = 0; g < own_.size(); ++g)
      options_of(optimizer_.param_groups()[g]).momentum(own_[g].first).weight_decay(own_[g].second);
  }
  Without(const Without&) = delete;
  Without& operator=(const Without&) = delete;

 private:
  torch::optim::Optimizer& optimizer_;
  std::vector<std::pair<double, double>> own_;
};

}  // namespace

GivenMomentum::GivenMomentum(torch::optim::Optimizer& optimizer)
    : optimizer_(optimizer), value_(momentum_of(optimizer)) {}

void GivenMomentum::step() {
  const SenderMomentum now = momentum_of(optimizer_);
  if (now.factor != value_.factor || now.nesterov != value_.nesterov)
    refuse("the optimizer's momentum changed after the Trainer was made, which no sender knows");
  add_decay();
  const Without without(optimizer_);
  (void)optimizer_.step();
}

void GivenMomentum::add_decay() {
  at::NoGradGuard no_grad;
  const double m = value_.factor;
  for (auto& group : optimizer_.param_groups()) {
    const double w = options_of(group).weight_decay();
    for (at::Tensor& p : group.params()) {
      at::Tensor& gradient = p.mutable_grad();
      if (!gradient.defined()) continue;
      auto b = decayed_.find(p.unsafeGetTensorImpl());
      if (b == decayed_.end()) {
        if (w == 0) continue;
        const bool narrow = p.element_size() < 4;
        b = decayed_
                .emplace(p.unsafeGetTensorImpl(),
                         at::zeros_like(p, narrow ? p.options().dtype(at::kFloat) : p.options()))
                .first;
      }
      b->second.mul_(m).add_(p, w);
      if (value_.nesterov)
        gradient.add_(p, w).add_(b->second, m);
      else
        gradient.add_(b->second);
    }
  }
}

}  // namespace hybridsync
