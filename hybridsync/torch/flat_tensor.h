// Numbers of the core as torch tensors, without a copy.
#pragma once

#include <torch/types.h>

#include "hybridsync/math/values.h"

namespace hybridsync {

// A flat CPU tensor over this memory, which must outlive it.
inline at::Tensor flat_tensor(const Values& values) {
  return std::visit(
      [](auto s) {
        using T = typename decltype(s)::value_type;
        return at::from_blob(s.data(), {static_cast<int64_t>(s.size())},
                             c10::CppTypeToScalarType<T>::value);
      },
      values);
}

// The same to read from: torch has no constant tensors, so that is the caller's promise.
inline at::Tensor flat_tensor(const ConstValues& values) {
  return std::visit(
      [](auto s) {
        using T = typename decltype(s)::value_type;
        return flat_tensor(Values(std::span<T>(const_cast<T*>(s.data()), s.size())));
      },
      values);
}

}  // namespace hybridsync
