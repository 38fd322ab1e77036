// One number for a whole value: chains of lineages, and the explorer's table of states. The same on
// every machine of this byte order.
//
// A value is digested by its parts: numbers, enumerations, vectors, maps, optionals, variants, and
// structs with `visit(self, f)`.
#pragma once

#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <type_traits>
#include <variant>
#include <vector>

namespace hybridsync {

// Self derives from it, and may say for some types how they are digested: by overloads of one(),
// beside `using DigestBase<Self>::one`.
template <class Self>
class DigestBase {
 public:
  template <class... T>
  Self& add(const T&... values) {
    (self().one(values), ...);
    return self();
  }
  uint64_t value() const { return XXH3_64bits(bytes_.data(), bytes_.size()); }
  XXH128_hash_t wide() const { return XXH3_128bits(bytes_.data(), bytes_.size()); }
  void clear() { bytes_.clear(); }

  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void one(const T& value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(T));
  }
  template <class T>
  void one(const std::vector<T>& values) {
    self().one(values.size());
    for (const T& value : values) self().one(value);
  }
  template <class K, class V>
  void one(const std::map<K, V>& values) {
    self().one(values.size());
    for (const auto& [key, value] : values) add(key, value);
  }
  template <class T>
  void one(const std::optional<T>& value) {
    self().one(value.has_value());
    if (value) self().one(*value);
  }
  template <class... T>
  void one(const std::variant<T...>& value) {
    self().one(value.index());
    std::visit([&](const auto& v) { self().one(v); }, value);
  }
  template <class T>
  requires requires(const T& t) {
    T::visit(t, [](const auto&...) {});
  }
  void one(const T& value) {
    T::visit(value, [&](const auto&... parts) { add(parts...); });
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }

  std::vector<std::byte> bytes_;
};

class Digest : public DigestBase<Digest> {};

}  // namespace hybridsync
