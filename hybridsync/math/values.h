// Spans of numbers of either width. Parameters in half precision live here as fp32, those in double
// as fp64; nothing else enters the core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "hybridsync/config/real.h"

namespace hybridsync {

using Values = std::variant<std::span<float>, std::span<double>>;
using ConstValues = std::variant<std::span<const float>, std::span<const double>>;

inline Real type_of(const Values& v) { return static_cast<Real>(v.index()); }
inline size_t count_of(const Values& v) {
  return std::visit([](auto s) { return s.size(); }, v);
}

// Memory of `count` numbers as Values; `data` must be aligned for `type`.
inline Values values_at(std::byte* data, Real type, size_t count) {
  if (type == Real::f32) return std::span<float>(reinterpret_cast<float*>(data), count);
  return std::span<double>(reinterpret_cast<double*>(data), count);
}

inline Values subspan(const Values& v, size_t offset, size_t count) {
  return std::visit([&](auto s) -> Values { return s.subspan(offset, count); }, v);
}

inline ConstValues subspan(const ConstValues& v, size_t offset, size_t count) {
  return std::visit([&](auto s) -> ConstValues { return s.subspan(offset, count); }, v);
}

inline ConstValues as_const(const Values& v) {
  if (v.index() == 0) return std::span<const float>(std::get<0>(v));
  return std::span<const double>(std::get<1>(v));
}

// Beside std::as_const, which would be found for these as well.
inline ConstValues as_const(Values& v) { return as_const(static_cast<const Values&>(v)); }
inline ConstValues as_const(Values&& v) { return as_const(static_cast<const Values&>(v)); }

inline std::span<const std::byte> bytes_of(const ConstValues& v) {
  return std::visit([](auto s) { return std::as_bytes(s); }, v);
}

inline std::span<std::byte> bytes_of(const Values& v) {
  return std::visit([](auto s) { return std::as_writable_bytes(s); }, v);
}

}  // namespace hybridsync
