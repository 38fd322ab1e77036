// What distinguishes two states of the machines when time stands still: a digest of a value in
// which it only counts whether a timer is armed, not for when, and not how often it has fired.
#pragma once

#include <xxhash.h>

#include <cstddef>
#include <map>
#include <optional>
#include <type_traits>
#include <variant>
#include <vector>

#include "hybridsync/decide/seat.h"

namespace hybridsync {

class Canonical {
 public:
  template <class... T>
  Canonical& add(const T&... values) {
    (one(values), ...);
    return *this;
  }
  XXH128_hash_t digest() const { return XXH3_128bits(bytes_.data(), bytes_.size()); }
  void clear() { bytes_.clear(); }

 private:
  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void one(const T& value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(T));
  }
  void one(const std::optional<Micros>& armed) { one(armed.has_value()); }
  template <class T>
  void one(const std::vector<T>& values) {
    one(values.size());
    for (const T& value : values) one(value);
  }
  template <class T>
  void one(const std::optional<T>& value) {
    one(value.has_value());
    if (value) one(*value);
  }
  template <class... T>
  void one(const std::variant<T...>& value) {
    one(value.index());
    std::visit([&](const auto& v) { one(v); }, value);
  }
  template <class T>
  requires requires(const T& t) {
    T::visit(t, [](const auto&...) {});
  }
  void one(const T& value) {
    T::visit(value, [&](const auto&... parts) { add(parts...); });
  }
  // A seat's own plain ints are its two counters of questions asked again: they only stretch
  // pauses.
  void one(const Seat& seat) {
    Seat::visit(seat, [&](const auto&... parts) {
      constexpr int kCounters = (0 + ... + (std::is_same_v<decltype(parts), const int&> ? 1 : 0));
      static_assert(kCounters == 2, "what is the new one?");
      (part(parts), ...);
    });
  }
  template <class T>
  void part(const T& value) {
    if constexpr (!std::is_same_v<T, int>) one(value);
  }

  std::vector<std::byte> bytes_;
};

}  // namespace hybridsync
