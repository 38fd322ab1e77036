// What distinguishes two states of the machines when time stands still: a digest of a value in
// which it only counts whether a timer is armed, not for when, and not how often it has fired.
#pragma once

#include <optional>
#include <type_traits>

#include "hybridsync/decide/digest.h"
#include "hybridsync/decide/seat.h"

namespace hybridsync {

class Canonical : public DigestBase<Canonical> {
 public:
  using DigestBase<Canonical>::one;

  void one(const std::optional<Micros>& armed) { one(armed.has_value()); }
  // A seat's own plain ints are its two counters of questions asked again: they only stretch
  // pauses.
  void one(const Seat& seat) {
    Seat::visit(seat, [&](const auto&... parts) {
      constexpr int kCounters = (0 + ... + (std::is_same_v<decltype(parts), const int&> ? 1 : 0));
      static_assert(kCounters == 2, "what is the new one?");
      (part(parts), ...);
    });
  }

 private:
  template <class T>
  void part(const T& value) {
    if constexpr (!std::is_same_v<T, int>) one(value);
  }
};

}  // namespace hybridsync
