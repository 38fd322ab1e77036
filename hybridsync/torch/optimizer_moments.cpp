#include "hybridsync/torch/optimizer_moments.h"

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <type_traits>

#include "hybridsync/config/error.h"
#include "hybridsync/torch/flat_tensor.h"

namespace hybridsync {
namespace {

using namespace torch::optim;

// One parameter's, where the optimizer has any.
struct Memory {
  at::Tensor first;        // momentum; undefined: none yet
  at::Tensor second;       // Adam's; undefined: there is none
  double first_share = 1;  // bias correction: of their true values, what they hold
  double second_share = 1;
  double eps = 0;
};

template <class State, class Options>
Memory of_adam(OptimizerParamState& any, const OptimizerOptions& options) {
  auto& state = static_cast<State&>(any);
  const auto& adam = static_cast<const Options&>(options);
  const auto steps = static_cast<double>(state.step());
  return {state.exp_avg(), state.exp_avg_sq(), 1 - std::pow(std::get<0>(adam.betas()), steps),
          1 - std::pow(std::get<1>(adam.betas()), steps), adam.eps()};
}

Memory memory_of(Optimizer& optimizer, c10::TensorImpl* parameter, size_t group) {
  const auto found = optimizer.state().find(parameter);
  if (found == optimizer.state().end()) return {};
  const OptimizerOptions& options = optimizer.param_groups()[group].options();
  if (dynamic_cast<AdamW*>(&optimizer))
    return of_adam<AdamWParamState, AdamWOptions>(*found->second, options);
  if (dynamic_cast<Adam*>(&optimizer))
    return of_adam<AdamParamState, AdamOptions>(*found->second, options);
  Memory moments;
  if (dynamic_cast<SGD*>(&optimizer))
    moments.first = static_cast<SGDParamState&>(*found->second).momentum_buffer();
  return moments;
}

bool has_momentum(Optimizer& optimizer) {
  if (dynamic_cast<AdamW*>(&optimizer) || dynamic_cast<Adam*>(&optimizer)) return true;
  if (!dynamic_cast<SGD*>(&optimizer)) return false;
  for (auto& group : optimizer.param_groups())
    if (static_cast<SGDOptions&>(group.options()).momentum() == 0) return false;
  return true;
}

}  // namespace

OptimizerMoments::OptimizerMoments(const Parameters& parameters, Optimizer& optimizer, double floor)
    : parameters_(parameters), optimizer_(optimizer), floor_(floor) {
  for (size_t g = 0; g < optimizer.param_groups().size(); ++g)
    for (const auto& p : optimizer.param_groups()[g].params()) groups_[p.unsafeGetTensorImpl()] = g;
  rates_.resize(optimizer.param_groups().size());
}

void OptimizerMoments::stepped() {
  for (size_t g = 0; g < rates_.size(); ++g)
    rates_[g] += optimizer_.param_groups()[g].options().get_lr();
  if (floor_ == 0) return;
  const torch::NoGradGuard no_grad;
  for (const auto& [parameter, group] : groups_) {
    const at::Tensor second = memory_of(optimizer_, parameter, group).second;
    if (second.defined()) second.copy_(torch::maximum(second, second.mean() * floor_));
  }
}

void OptimizerMoments::begin_pull() {
  if (!has_momentum(optimizer_))
    throw ConfigError(
        "tier[1].momentum_pull needs an optimizer with momentum: torch's Adam, AdamW, or SGD with "
        "momentum in every parameter group; use one of them, or set momentum_pull = 0");
  rates_.assign(rates_.size(), 0);
  before_.clear();
}

void OptimizerMoments::pull(std::span<const Fragment> ranges, ConstValues mean_delta,
                            double share) {
  if (ranges.empty()) return;
  Rates& before = before_[ranges.front().id];
  before.resize(rates_.size());
  Rates since = rates_;
  for (size_t g = 0; g < since.size(); ++g) since[g] -= before[g];
  before = rates_;
  const torch::NoGradGuard no_grad;
  const at::Tensor mean = flat_tensor(mean_delta);
  int64_t at = 0;
  for (const Fragment& range : ranges) {
    for (const Parameters::Part& part : parameters_.parts(range))
      pull(part, mean.narrow(0, at + part.at, part.count), share, since);
    at += range.count;
  }
}

void OptimizerMoments::pull(const Parameters::Part& part, const at::Tensor& mean_delta,
                            double share, const Rates& rates) {
  c10::TensorImpl* parameter = part.entry->tensor.unsafeGetTensorImpl();
  const auto group = groups_.find(parameter);
  if (group == groups_.end() || rates[group->second] == 0) return;
  const Memory moments = memory_of(optimizer_, parameter, group->second);
  if (!moments.first.defined()) return;
  const at::Tensor first = Parameters::in_memory_order(moments.first, part.begin, part.count);
  at::Tensor wanted = mean_delta.to(first.device(), first.scalar_type(), false, true);
  if (moments.second.defined())
    wanted.mul_(Parameters::in_memory_order(moments.second, part.begin, part.count)
                    .div(moments.second_share)
                    .sqrt_()
                    .add_(moments.eps));
  first.mul_(1 - share).add_(wanted, share * moments.first_share / rates[group->second]);
}

}  // namespace hybridsync
