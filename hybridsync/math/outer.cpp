#include "hybridsync/math/outer.h"

#include <cassert>

namespace hybridsync {
namespace {

template <class T>
void plain(T lr, std::span<const T> delta, std::span<T> anchor) {
  for (size_t i = 0; i < anchor.size(); ++i) anchor[i] -= lr * delta[i];
}

template <class T>
void with_momentum(T lr, T mu, bool nesterov, std::span<const T> delta, std::span<T> anchor,
                   std::span<T> buffer) {
  for (size_t i = 0; i < anchor.size(); ++i) {
    buffer[i] = mu * buffer[i] + delta[i];
    anchor[i] -= lr * (nesterov ? delta[i] + mu * buffer[i] : buffer[i]);
  }
}

}  // namespace

OuterConfig outer_for(const OuterConfig& outer, CodecKind codec, bool plain) {
  const bool gains = outer.lr == kAutoLr || (outer.lr > 1 && codec != CodecKind::fp32);
  return gains && plain ? OuterConfig{} : outer;
}

void outer_step(const OuterConfig& outer, ConstValues mean_delta, Values anchor, Values buffer) {
  std::visit(
      [&](auto a) {
        using T = typename decltype(a)::value_type;
        const auto delta = std::get<std::span<const T>>(mean_delta);
        assert(delta.size() == a.size());
        const T lr = static_cast<T>(outer.lr);
        if (outer.momentum == 0) return plain<T>(lr, delta, a);
        const auto b = std::get<std::span<T>>(buffer);
        assert(b.size() == a.size());
        with_momentum<T>(lr, static_cast<T>(outer.momentum), outer.nesterov, delta, a, b);
      },
      anchor);
}

}  // namespace hybridsync
