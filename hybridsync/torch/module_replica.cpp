#include "hybridsync/torch/module_replica.h"

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
                             BatchNorm& batch_norm)
    : parameters_(parameters),
      optimizer_(optimizer),
      batch_norm_(batch_norm),
      optimizer_parameters_(count_parameters(optimizer)) {
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

double ModuleReplica::optimizer_step(int set, double lr_factor, const std::vector<uint8_t>& used) {
  views_->expose(set, used);
  std::vector<double> base;
  for (auto& group : optimizer_.param_groups()) {
    base.push_back(group.options().get_lr());
    group.options().set_lr(base.back() * lr_factor);
  }
  optimizer_.step();
  size_t g = 0;
  for (auto& group : optimizer_.param_groups()) group.options().set_lr(base[g++]);
  return base.empty() ? 0 : base.front() * lr_factor;
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
