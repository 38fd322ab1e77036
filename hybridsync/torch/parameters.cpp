#include "hybridsync/torch/parameters.h"

#include <torch/nn/module.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "hybridsync/config/error.h"
#include "hybridsync/torch/flat_tensor.h"

namespace hybridsync {
namespace {

Real accumulator_type(const std::string& name, const at::Tensor& p) {
  if (p.layout() != at::kStrided || !p.is_non_overlapping_and_dense())
    throw ConfigError("parameter " + name +
                      " is not a dense tensor: hybridsync cannot lay it out flat");
  switch (p.scalar_type()) {
    case at::kDouble:
      return Real::f64;
    case at::kFloat:
    case at::kHalf:
    case at::kBFloat16:
      return Real::f32;
    default:
      throw ConfigError(
          "parameter " + name + " has type " + std::string(toString(p.scalar_type())) +
          ": hybridsync trains float64, float32, float16 and bfloat16; freeze it with "
          "requires_grad_(false) or convert it");
  }
}

at::ScalarType scalar_type(Real type) { return type == Real::f32 ? at::kFloat : at::kDouble; }

}  // namespace

Parameters::Parameters(torch::nn::Module& model, int64_t bucket_bytes) {
  std::set<c10::TensorImpl*> seen;
  for (const auto& item : model.named_parameters()) {
    if (!item.value().defined() || !seen.insert(item.value().unsafeGetTensorImpl()).second)
      continue;
    if (!item.value().requires_grad()) {
      frozen_.push_back(item.value());
      frozen_names_.push_back(item.key());
      continue;
    }
    const Real type = accumulator_type(item.key(), item.value());
    const bool narrow = item.value().scalar_type() != scalar_type(type);
    entries_.push_back({item.key(), item.value(), {type, 0, item.value().numel(), 0}, narrow});
    any_narrow_ = any_narrow_ || narrow;
  }
  if (entries_.empty())
    throw ConfigError(
        "the model has no parameter that requires a gradient: there is nothing to train");
  std::reverse(entries_.begin(), entries_.end());
  std::vector<ParameterShape> shapes;
  for (const Entry& e : entries_) shapes.push_back({e.slice.type, e.slice.count});
  layout_ = plan_buckets(shapes, bucket_bytes);
  for (size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].slice = layout_.slices[i];
    of_type_[entries_[i].slice.type == Real::f64].push_back(i);
  }
  if (!entries_.empty()) device_ = entries_.front().tensor.device();
  for (const Entry& e : entries_)
    if (e.tensor.device() != device_)
      throw ConfigError("parameter " + e.name + " is on " + e.tensor.device().str() + ", " +
                        entries_.front().name + " on " + device_.str() +
                        ": hybridsync needs a rank's parameters on one device");
}

at::Tensor Parameters::in_memory_order(const at::Tensor& t, int64_t begin, int64_t count) {
  return t.detach().as_strided({count}, {1}, t.storage_offset() + begin);
}

std::vector<Parameters::Part> Parameters::parts(const Fragment& range) const {
  const auto& entries = of_type_[range.type == Real::f64];
  const int64_t last = range.offset + range.count;
  auto e = std::partition_point(entries.begin(), entries.end(), [&](size_t i) {
    return entries_[i].slice.offset + entries_[i].slice.count <= range.offset;
  });
  std::vector<Part> found;
  for (; e != entries.end() && entries_[*e].slice.offset < last; ++e) {
    const Slice& slice = entries_[*e].slice;
    const int64_t begin = std::max(slice.offset, range.offset);
    const int64_t end = std::min(slice.offset + slice.count, last);
    if (begin < end)
      found.push_back({&entries_[*e], begin - slice.offset, begin - range.offset, end - begin});
  }
  return found;
}

// Of a parameter in the host's memory as wide as its accumulator: where its numbers are.
std::byte* Parameters::plain_data(const Entry& e) {
  if (e.narrow || !e.tensor.is_cpu()) return nullptr;
  return static_cast<std::byte*>(e.tensor.data_ptr());
}

void Parameters::read(const Fragment& fragment, Values out) const {
  at::NoGradGuard no_grad;
  const auto bytes = bytes_of(out);
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  const size_t size = size_of(fragment.type);
  for (const Part& p : parts(fragment)) {
    if (const std::byte* data = plain_data(*p.entry))
      std::memcpy(bytes.data() + p.at * size, data + p.begin * size, p.count * size);
    else
      flat_tensor(out)
          .narrow(0, p.at, p.count)
          .copy_(in_memory_order(p.entry->tensor, p.begin, p.count));
  }
}

void Parameters::write(const Fragment& fragment, ConstValues values) const {
  at::NoGradGuard no_grad;
  const auto bytes = bytes_of(values);
  const size_t size = size_of(fragment.type);
  for (const Part& p : parts(fragment)) {
    if (std::byte* data = plain_data(*p.entry)) {
      std::memcpy(data + p.begin * size, bytes.data() + p.at * size, p.count * size);
      p.entry->tensor.unsafeGetTensorImpl()->bump_version();
    } else {
      in_memory_order(p.entry->tensor, p.begin, p.count)
          .copy_(flat_tensor(values).narrow(0, p.at, p.count));
    }
  }
}

void Parameters::round(const Fragment& fragment, Values values) const {
  if (!any_narrow_) return;
  at::NoGradGuard no_grad;
  at::Tensor flat = flat_tensor(values);
  for (const Part& p : parts(fragment)) {
    if (!p.entry->narrow) continue;
    at::Tensor part = flat.narrow(0, p.at, p.count);
    part.copy_(part.to(p.entry->tensor.scalar_type()));
  }
}

void Parameters::check_unchanged() const {
  const std::string remedy =
      " after the Trainer was made; make a new Trainer for the changed model, on all ranks";
  for (const Entry& e : entries_)
    if (!e.tensor.requires_grad())
      throw ConfigError("parameter " + e.name + " was frozen (requires_grad false)" + remedy);
  for (size_t i = 0; i < frozen_.size(); ++i)
    if (frozen_[i].requires_grad())
      throw ConfigError("parameter " + frozen_names_[i] + " was unfrozen (requires_grad true)" +
                        remedy);
}

}  // namespace hybridsync
