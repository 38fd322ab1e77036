#include "hybridsync/torch/module_replica.h"

#include <torch/optim/lbfgs.h>

#include <cmath>
#include <functional>
#include <set>

#include "hybridsync/config/error.h"

namespace hybridsync {
namespace {

size_t count_parameters(torch::optim::Optimizer& optimizer) {
  size_t n = 0;
  for (const auto& group : optimizer.param_groups()) n += group.params().size();
  return n;
}

}  // namespace

ModuleReplica::ModuleReplica(const Parameters& parameters, torch::optim::Optimizer& optimizer,
                             BatchNorm& batch_norm, double second_moment_floor)
    : parameters_(parameters),
      optimizer_(optimizer),
      batch_norm_(batch_norm),
      optimizer_parameters_(count_parameters(optimizer)),
      moments_(parameters, optimizer, second_moment_floor) {
  if (dynamic_cast<torch::optim::LBFGS*>(&optimizer))
    throw ConfigError(
        "LBFGS evaluates the loss several times per step, which a window of gradients cannot give; "
        "use "
        "SGD, Adam or another optimizer that steps without a closure");
  std::set<c10::TensorImpl*> known;
  for (const auto& e : parameters.entries()) known.insert(e.tensor.unsafeGetTensorImpl());
  size_t g = 0;
  for (const auto& group : optimizer.param_groups()) {
    for (size_t i = 0; i < group.params().size(); ++i)
      if (group.params()[i].requires_grad() &&
          !known.contains(group.params()[i].unsafeGetTensorImpl()))
        throw ConfigError("parameter " + std::to_string(i) + " of the optimizer's group " +
                          std::to_string(g) +
                          " is not a parameter of the model: it would never be "
                          "synchronised; give the Trainer the module that holds it");
    ++g;
  }
}

std::vector<double> ModuleReplica::base_rates() const {
  std::vector<double> rates;
  for (auto& group : optimizer_.param_groups()) rates.push_back(group.options().get_lr());
  return rates;
}

double ModuleReplica::optimizer_step(int set, double lr_factor, const SideData& agreed) {
  views_->expose(set, agreed.used);
  const std::vector<double> own = base_rates();
  const auto set_rates = [this](const auto& rate_of) {
    for (size_t g = 0; g < optimizer_.param_groups().size(); ++g)
      optimizer_.param_groups()[g].options().set_lr(rate_of(g));
  };
  const auto rate = [&](size_t g) {
    const bool known = g < agreed.rates.size() && std::isfinite(agreed.rates[g]);
    return (known ? agreed.rates[g] : own[g]) * lr_factor;
  };
  struct Restore {  // also when the optimizer throws: rates never compound
    std::function<void()> f;
    ~Restore() { f(); }
  } restore{[&] { set_rates([&](size_t g) { return own[g]; }); }};
  set_rates(rate);
  if (given_)
    given_->step();
  else
    optimizer_.step();
  moments_.stepped();
  return own.empty() ? 0 : rate(0);
}

SenderMomentum ModuleReplica::take_momentum() { return given_.emplace(optimizer_).value(); }

void ModuleReplica::begin_momentum_pull() { moments_.begin_pull(); }

void ModuleReplica::pull_momentum(std::span<const Fragment> ranges, ConstValues mean_delta,
                                  double share) {
  moments_.pull(ranges, mean_delta, share);
}

void ModuleReplica::advance_statistics(const std::vector<Moments>& window) {
  batch_norm_.advance(window);
}

SideData ModuleReplica::running_statistics(double weight) const {
  SideData side;
  side.batch_norm = batch_norm_.running(weight);
  side.batches_tracked = batch_norm_.batches_tracked();
  return side;
}

void ModuleReplica::set_running_statistics(const SideData& side) {
  batch_norm_.set_running(side.batch_norm, side.batches_tracked);
}

void ModuleReplica::check_unchanged() const {
  parameters_.check_unchanged();
  if (count_parameters(optimizer_) != optimizer_parameters_)
    throw ConfigError(
        "the optimizer's parameters changed after the Trainer was made; make a new Trainer, "
        "on all ranks");
}

}  // namespace hybridsync
