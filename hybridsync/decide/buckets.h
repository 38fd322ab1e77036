// How the flat gradient is cut for the way inside a node: which parameters travel together, and
// when.
#pragma once

#include <cstdint>
#include <vector>

#include "hybridsync/config/real.h"

namespace hybridsync {

// A parameter's place in the flat vector of its type. Flat order is the order of this list.
struct Slice {
  Real type = Real::f32;
  int64_t offset = 0;  // elements
  int64_t count = 0;
  int bucket = 0;  // the bucket it travels in
};

// A contiguous range of the flat gradient that is reduced in one call.
struct Bucket {
  Real type = Real::f32;
  int64_t offset = 0;
  int64_t count = 0;
  int parameters = 0;  // so many must be ready before it can leave
};

struct Layout {
  std::vector<Slice> slices;    // as the parameters were given
  std::vector<Bucket> buckets;  // in the order in which they leave
  int64_t count_f32 = 0;
  int64_t count_f64 = 0;
};

struct ParameterShape {
  Real type = Real::f32;
  int64_t count = 0;
};

// Lays parameters out one after the other, in the order given (the order in which backward finishes
// them: last layer first), and cuts where a bucket would exceed `bucket_bytes`. A parameter is
// never split, so one larger than that has a bucket of its own. Every parameter starts at a
// multiple of 64 bytes.
Layout plan_buckets(const std::vector<ParameterShape>& parameters, int64_t bucket_bytes);

}  // namespace hybridsync
