#include "hybridsync/torch/batch_norm.h"

#include <torch/csrc/autograd/generated/Functions.h>
#include <torch/nn/modules/batchnorm.h>

#include <algorithm>
#include <unordered_set>

#include "hybridsync/config/error.h"

namespace hybridsync {
namespace {

std::vector<double> doubles(const at::Tensor& t) {
  const at::Tensor d = t.detach().to(at::kCPU, at::kDouble).contiguous();
  return {d.data_ptr<double>(), d.data_ptr<double>() + d.numel()};
}

void assign(at::Tensor& to, const std::vector<double>& values) {
  to.copy_(at::from_blob(const_cast<double*>(values.data()), {static_cast<int64_t>(values.size())},
                         at::kDouble));
}

// Calls f(node) for every node of the graph behind `root`, once.
template <class F>
void for_each_node(torch::autograd::Node* root, F f) {
  std::vector<torch::autograd::Node*> open{root};
  std::unordered_set<torch::autograd::Node*> seen{root};
  while (!open.empty()) {
    torch::autograd::Node* node = open.back();
    open.pop_back();
    f(node);
    for (const auto& edge : node->next_edges())
      if (edge.function && seen.insert(edge.function.get()).second)
        open.push_back(edge.function.get());
  }
}

}  // namespace

template <class Impl>
bool BatchNorm::add(const std::string& name, torch::nn::Module& module) {
  auto* layer = dynamic_cast<Impl*>(&module);
  if (!layer) return false;
  if (!layer->options.track_running_stats() || !layer->running_mean.defined()) return true;
  Layer l;
  l.name = name;
  l.mean = layer->running_mean;
  l.var = layer->running_var;
  l.batches = layer->num_batches_tracked;
  l.momentum = layer->options.momentum();
  l.has_trainable_weight =
      layer->options.affine() && (layer->weight.requires_grad() || layer->bias.requires_grad());
  load(l);
  const size_t channels = l.running.mean.size();
  l.window = {0, std::vector<double>(channels), std::vector<double>(channels)};
  layers_.push_back(std::move(l));
  return true;
}

BatchNorm::BatchNorm(torch::nn::Module& model, RunningStats policy) : policy_(policy) {
  using namespace torch::nn;
  const auto add_any = [this](const std::string& name, Module& m) {
    (void)(add<BatchNorm1dImpl>(name, m) || add<BatchNorm2dImpl>(name, m) ||
           add<BatchNorm3dImpl>(name, m));
  };
  add_any("model", model);  // apart from its children, since it may live on the stack
  for (const auto& item : model.named_modules("", false)) add_any(item.key(), *item.value());
}

void BatchNorm::load(Layer& l) {
  l.running = {doubles(l.mean), doubles(l.var), l.batches.item<int64_t>()};
}

void BatchNorm::store(Layer& l) {
  at::NoGradGuard no_grad;
  assign(l.mean, l.running.mean);
  assign(l.var, l.running.var);
  l.batches.fill_(l.running.batches_tracked);
}

BatchNorm::Layer* BatchNorm::find(const at::Tensor& running_mean) {
  for (Layer& l : layers_)
    if (running_mean.defined() && l.mean.data_ptr() == running_mean.data_ptr()) return &l;
  return nullptr;
}

void BatchNorm::before_backward(const at::Tensor& loss) {
  if (layers_.empty() || policy_ == RunningStats::per_micro_batch) return;
  captures_.assign(layers_.size(), 0);
  visit(loss);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& l = layers_[i];
    const bool called = l.batches.item<int64_t>() != l.running.batches_tracked;
    if (called && captures_[i] == 0 && !l.has_trainable_weight)
      throw ConfigError(
          "batch norm layer " + l.name +
          " runs in training mode, but neither its weights nor its "
          "input need a gradient, so its statistics cannot be seen; set it to eval(), or let its "
          "weight require a gradient, or use batch_norm.running_stats = \"per_micro_batch\"");
  }
}

void BatchNorm::visit(const at::Tensor& loss) {
  using namespace torch::autograd::generated;
  if (!loss.grad_fn()) return;
  const auto take = [&](auto* node) {
    if (!node->training) return;
    const auto self = node->getptr();
    if (Layer* l = find(node->running_mean_.unpack(self)))
      capture(*l, node->input_.unpack(self), node->result1_.unpack(self),
              node->result2_.unpack(self), [&] {
                if constexpr (requires { node->eps; })
                  return node->eps;
                else
                  return node->epsilon;
              }());
  };
  for_each_node(loss.grad_fn().get(), [&](torch::autograd::Node* node) {
    if (auto* native = dynamic_cast<NativeBatchNormBackward0*>(node))
      take(native);
    else if (auto* cudnn = dynamic_cast<CudnnBatchNormBackward0*>(node))
      take(cudnn);
  });
}

void BatchNorm::capture(Layer& l, const at::Tensor& input, const at::Tensor& mean,
                        const at::Tensor& invstd, double eps) {
  Moments m;
  m.mean = doubles(mean);
  m.count = static_cast<double>(input.numel()) / static_cast<double>(m.mean.size());
  m.var = doubles(invstd);
  for (double& v : m.var) v = std::max(0.0, 1 / (v * v) - eps);
  merge(l.window, m);
  ++captures_[static_cast<size_t>(&l - layers_.data())];
}

void BatchNorm::after_backward(double samples) {
  samples_ += samples;
  for (Layer& l : layers_) {
    if (policy_ == RunningStats::per_window)
      store(l);
    else
      load(l);
  }
}

std::vector<Moments> BatchNorm::window() const {
  if (policy_ == RunningStats::per_micro_batch) return running(samples_);
  std::vector<Moments> all;
  for (const Layer& l : layers_) all.push_back(l.window);
  return all;
}

void BatchNorm::reset() {
  samples_ = 0;
  for (Layer& l : layers_) l.window.count = 0;
}

void BatchNorm::advance(const std::vector<Moments>& merged) {
  for (size_t i = 0; i < layers_.size() && i < merged.size(); ++i) {
    Layer& l = layers_[i];
    if (merged[i].count == 0) continue;
    if (policy_ == RunningStats::per_window) {
      hybridsync::advance(l.running, merged[i], l.momentum);
    } else {
      l.running.mean = merged[i].mean;
      l.running.var = merged[i].var;
    }
    store(l);
  }
}

std::vector<Moments> BatchNorm::running(double weight) const {
  std::vector<Moments> all;
  for (const Layer& l : layers_) all.push_back({weight, l.running.mean, l.running.var});
  return all;
}

std::vector<int64_t> BatchNorm::batches_tracked() const {
  std::vector<int64_t> all;
  for (const Layer& l : layers_) all.push_back(l.running.batches_tracked);
  return all;
}

void BatchNorm::set_running(const std::vector<Moments>& running,
                            const std::vector<int64_t>& batches_tracked) {
  for (size_t i = 0; i < layers_.size() && i < running.size(); ++i) {
    Layer& l = layers_[i];
    if (running[i].count > 0) {
      l.running.mean = running[i].mean;
      l.running.var = running[i].var;
    }
    if (i < batches_tracked.size()) l.running.batches_tracked = batches_tracked[i];
    store(l);
  }
}

}  // namespace hybridsync
