// The trainable parameters of a model as ranges of flat vectors, and everything else as tensors by
// name.
#pragma once

#include <torch/types.h>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "hybridsync/decide/buckets.h"
#include "hybridsync/decide/fragments.h"
#include "hybridsync/math/values.h"

namespace torch::nn {
class Module;
}

namespace hybridsync {

// Tied parameters appear once, under their first name. Frozen ones (requires_grad false) are no
// part of the flat vectors. Throws ConfigError for a parameter that cannot be flat (complex,
// quantised, sparse) or when parameters live on different devices, and names it; and for
// a model without any.
class Parameters {
 public:
  Parameters(torch::nn::Module& model, int64_t bucket_bytes);

  struct Entry {
    std::string name;
    at::Tensor tensor;
    Slice slice;
    // Accumulates in fp32 beside the parameter, because the parameter itself is narrower.
    bool narrow = false;
  };
  const std::vector<Entry>& entries() const { return entries_; }  // flat order: last layer first
  const Layout& layout() const { return layout_; }
  at::Device device() const { return device_; }
  bool any_narrow() const { return any_narrow_; }

  // What lies in a flat range: `count` elements of a tensor, in memory order from `begin` on, which
  // are `at` in the range.
  struct Part {
    const Entry* entry;
    int64_t begin;
    int64_t at;
    int64_t count;
  };
  std::vector<Part> parts(const Fragment& range) const;
  // The part of a dense tensor, seen in memory order, that starts at `begin`. A view.
  static at::Tensor in_memory_order(const at::Tensor& tensor, int64_t begin, int64_t count);

  // Parameters -> flat and back, for one fragment; narrow ones are widened and rounded.
  void read(const Fragment& fragment, Values out) const;
  void write(const Fragment& fragment, ConstValues values) const;
  // What read() would give after write(values): rounds the narrow ones, in place.
  void round(const Fragment& fragment, Values values) const;

  // Throws ConfigError when the model no longer is what it was at construction: requires_grad has
  // flipped.
  void check_unchanged() const;

 private:
  static std::byte* plain_data(const Entry& entry);

  std::vector<Entry> entries_;
  std::array<std::vector<size_t>, 2> of_type_;  // single, double precision: entries in flat order
  std::vector<at::Tensor> frozen_;
  std::vector<std::string> frozen_names_;
  Layout layout_;
  at::Device device_ = at::kCPU;
  bool any_narrow_ = false;
};

}  // namespace hybridsync
