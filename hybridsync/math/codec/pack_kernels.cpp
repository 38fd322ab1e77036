#include "hybridsync/math/codec/pack_kernels.h"

#include <cassert>
#include <cfloat>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hybridsync/math/codec/pack_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hybridsync {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, kPackStep>;
using Words = hn::RebindToSigned<Floats>;
using Bytes = hn::Rebind<uint8_t, Words>;

MagnitudeRange magnitude_range(const float* u, size_t count) {
  const Floats d;
  auto least = hn::Set(d, FLT_MAX), largest = hn::Zero(d);
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto magnitude = hn::Abs(hn::LoadU(d, u + i));
    least = hn::Min(least, magnitude);
    largest = hn::Max(largest, magnitude);
  }
  return {hn::GetLane(hn::MinOfLanes(d, least)), hn::GetLane(hn::MaxOfLanes(d, largest))};
}

void choose_levels(const float* u, size_t count, const Levels& levels, uint8_t* symbols,
                   float* left_out) {
  const Floats d;
  const Words w;
  const auto low = hn::Set(d, levels.low), step = hn::Set(d, levels.step);
  const auto inverse = hn::Set(d, levels.inverse), most = hn::Set(d, levels.most);
  const auto half = hn::Set(d, 0.5f), largest = hn::Set(d, FLT_MAX);
  const auto sign_symbol = hn::Set(w, 1 << (levels.bits - 1));
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto x = hn::LoadU(d, u + i);
    const auto exact = hn::Add(hn::Mul(hn::Sub(hn::Abs(x), low), inverse), half);
    const auto j = hn::ConvertTo(w, hn::Min(hn::Max(exact, hn::Zero(d)), most));
    const auto level = hn::Add(low, hn::Mul(hn::ConvertTo(d, j), step));
    hn::StoreU(hn::Sub(x, hn::CopySign(hn::Min(level, largest), x)), d, left_out + i);
    const auto negative = hn::ShiftRight<31>(hn::BitCast(w, x));
    const auto symbol = hn::Or(j, hn::And(negative, sign_symbol));
    hn::StoreU(hn::DemoteTo(Bytes(), symbol), Bytes(), symbols + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hybridsync
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridsync {

HWY_EXPORT(magnitude_range);
HWY_EXPORT(choose_levels);

MagnitudeRange magnitude_range(const float* u, size_t count) {
  assert(count % kPackStep == 0);
  return HWY_DYNAMIC_DISPATCH(magnitude_range)(u, count);
}

void choose_levels(const float* u, size_t count, const Levels& levels, uint8_t* symbols,
                   float* left_out) {
  assert(count % kPackStep == 0);
  HWY_DYNAMIC_DISPATCH(choose_levels)(u, count, levels, symbols, left_out);
}

}  // namespace hybridsync
#endif
