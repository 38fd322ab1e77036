// The width of numbers in the core. Parameters in half precision live in it as fp32, those in
// double as fp64.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hybridsync {

enum class Real : uint8_t { f32 = 0, f64 = 1 };

inline constexpr size_t size_of(Real type) { return type == Real::f32 ? 4 : 8; }

}  // namespace hybridsync
