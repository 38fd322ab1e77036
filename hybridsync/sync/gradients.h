// A window's gradients: one flat vector per number type, in this rank's slot of the node's memory.
#pragma once

#include "hybridsync/decide/buckets.h"
#include "hybridsync/decide/fragments.h"
#include "hybridsync/math/values.h"

namespace hybridsync {

struct Gradients {
  Values f32;
  Values f64;

  const Values& all(Real type) const { return type == Real::f32 ? f32 : f64; }
  Values of(const Bucket& b) const { return subspan(all(b.type), b.offset, b.count); }
  Values of(const Fragment& f) const { return subspan(all(f.type), f.offset, f.count); }
};

}  // namespace hybridsync
