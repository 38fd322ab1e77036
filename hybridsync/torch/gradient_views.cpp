#include "hybridsync/torch/gradient_views.h"

#include <torch/csrc/autograd/variable.h>

#include "hybridsync/config/error.h"
#include "hybridsync/torch/flat_tensor.h"

namespace hybridsync {
namespace {

struct Hook final : torch::autograd::PostAccumulateGradHook {
  explicit Hook(std::function<void()> f) : f_(std::move(f)) {}
  void operator()(const at::Tensor&) override { f_(); }
  std::function<void()> f_;
};

}  // namespace

GradientViews::GradientViews(const Parameters& parameters, std::vector<Gradients> sets, bool staged)
    : parameters_(parameters), staged_(staged || parameters.device() != at::kCPU) {
  for (const Gradients& shared : sets) sets_.push_back(make(shared));
  used_.assign(sets_.size(), std::vector<uint8_t>(parameters_.entries().size()));
  for (size_t i = 0; i < parameters_.entries().size(); ++i) {
    const auto& entry = parameters_.entries()[i];
    if (torch::autograd::impl::post_acc_grad_hooks(entry.tensor))
      throw ConfigError(
          "parameter " + entry.name +
          " already has a post-accumulate-grad hook, and torch keeps only one: remove it "
          "before the Trainer is made");
    torch::autograd::impl::set_post_acc_grad_hooks(entry.tensor,
                                                   std::make_unique<Hook>([this, i] { fired(i); }));
  }
}

GradientViews::~GradientViews() {
  for (const auto& entry : parameters_.entries()) {
    torch::autograd::impl::set_post_acc_grad_hooks(entry.tensor, nullptr);
    entry.tensor.mutable_grad() = at::Tensor();  // it may be a view of memory that ends now
  }
}

GradientViews::Set GradientViews::make(const Gradients& shared) const {
  Set set{shared, {}, {}, {}, {}};
  for (int t = 0; t < 2; ++t) {
    set.shared_flat[t] = flat_tensor(shared.all(static_cast<Real>(t)));
    set.flat[t] =
        staged_ ? set.shared_flat[t].to(parameters_.device(), false, true) : set.shared_flat[t];
    if (!staged_) continue;
    const auto host = set.shared_flat[t].options().pinned_memory(parameters_.device().is_cuda());
    set.bounce[t] = at::empty(set.shared_flat[t].sizes(), host);
  }
  for (const auto& entry : parameters_.entries()) {
    const at::Tensor& flat = set.flat[static_cast<int>(entry.slice.type)];
    set.views.push_back(
        flat.as_strided(entry.tensor.sizes(), entry.tensor.strides(), entry.slice.offset).detach());
  }
  return set;
}

void GradientViews::zero(int s) {
  for (at::Tensor& flat : sets_[static_cast<size_t>(s)].flat) flat.zero_();
  auto& used = used_[static_cast<size_t>(s)];
  std::fill(used.begin(), used.end(), uint8_t{0});
  waiting_.clear();
  for (const Bucket& b : parameters_.layout().buckets) waiting_.push_back(b.parameters);
}

void GradientViews::attach(int s, double scale, bool unseeded, std::function<void(int)> ready) {
  through_grad_ = unseeded || parameters_.any_narrow();
  set_ = s;
  scale_ = scale;
  ready_ = std::move(ready);
  attached_ = true;
  const Set& set = sets_[static_cast<size_t>(s)];
  for (size_t i = 0; i < set.views.size(); ++i)
    parameters_.entries()[i].tensor.mutable_grad() = through_grad_ ? at::Tensor() : set.views[i];
}

void GradientViews::detach() {
  attached_ = false;
  ready_ = nullptr;
  for (const auto& entry : parameters_.entries()) entry.tensor.mutable_grad() = at::Tensor();
}

void GradientViews::fired(size_t i) {
  if (!attached_) return;  // a backward of the user's own, outside of the Trainer
  const auto& entry = parameters_.entries()[i];
  Set& set = sets_[static_cast<size_t>(set_)];
  at::Tensor& grad = entry.tensor.mutable_grad();
  if (through_grad_) {
    at::NoGradGuard no_grad;
    set.views[i].add_(grad.to_dense(), scale_);
    grad = at::Tensor();
  } else if (grad.is_sparse() || grad.data_ptr() != set.views[i].data_ptr()) {
    throw ConfigError("the gradient of parameter " + entry.name +
                      " was replaced during backward: hybridsync accumulates it in place");
  }
  used_[static_cast<size_t>(set_)][i] = 1;
  if (!ready_) return;
  const int bucket = entry.slice.bucket;
  if (--waiting_[static_cast<size_t>(bucket)] == 0)
    stage(set, parameters_.layout().buckets[static_cast<size_t>(bucket)], true);
  ready_(bucket);
}

void GradientViews::stage(Set& set, const Bucket& bucket, bool to_shared) const {
  if (!staged_) return;
  const auto type = static_cast<size_t>(bucket.type);
  at::Tensor shared = set.shared_flat[type].narrow(0, bucket.offset, bucket.count);
  at::Tensor bounce = set.bounce[type].narrow(0, bucket.offset, bucket.count);
  at::Tensor own = set.flat[type].narrow(0, bucket.offset, bucket.count);
  if (to_shared) {
    bounce.copy_(own);
    shared.copy_(bounce);
  } else {
    bounce.copy_(shared);
    own.copy_(bounce);
  }
}

void GradientViews::leave(int s) {
  Set& set = sets_[static_cast<size_t>(s)];
  const auto& buckets = parameters_.layout().buckets;
  for (size_t b = 0; b < buckets.size(); ++b)
    if (waiting_[b] != 0) stage(set, buckets[b], true);
}

void GradientViews::arrived(int s) {
  Set& set = sets_[static_cast<size_t>(s)];
  for (const Bucket& b : parameters_.layout().buckets) stage(set, b, false);
}

void GradientViews::expose(int s, const std::vector<uint8_t>& used) {
  arrived(s);
  const Set& set = sets_[static_cast<size_t>(s)];
  for (size_t i = 0; i < set.views.size(); ++i) {
    const auto& entry = parameters_.entries()[i];
    at::Tensor& grad = entry.tensor.mutable_grad();
    if (!used[i]) {
      grad = at::Tensor();
    } else {
      grad = entry.narrow ? set.views[i].to(entry.tensor.scalar_type()) : set.views[i];
    }
  }
}

}  // namespace hybridsync
