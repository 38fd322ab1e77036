// Values as typed fields of a message, in the order of their visit(), by a Writer or a
// PackedWriter. Payload handles do not travel.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "hybridsync/decide/lineage.h"
#include "hybridsync/wire/bytes.h"
#include "hybridsync/wire/packed.h"

namespace hybridsync {

template <class T>
concept Visitable = requires(T& t) {
  T::visit(t, [](auto&...) {});
};

void put(auto&, const Payload&) {}
void put(auto& w, double v) { w.f64(v); }
template <class T>
requires std::is_integral_v<T> || std::is_enum_v<T>
void put(auto& w, const T& v) {
  if constexpr (sizeof(T) == 1)
    w.u8(static_cast<uint8_t>(v));
  else if constexpr (sizeof(T) == 4)
    w.u32(static_cast<uint32_t>(v));
  else
    w.u64(static_cast<uint64_t>(v));
}
void put(auto& w, const std::string& v) { w.text(v); }
template <Visitable T>
void put(auto& w, const T& v);
template <class T>
void put(auto& w, const std::vector<T>& v) {
  w.u32(static_cast<uint32_t>(v.size()));
  for (const T& one : v) put(w, one);
}
template <Visitable T>
void put(auto& w, const T& v) {
  T::visit(v, [&](const auto&... fields) { (put(w, fields), ...); });
}

void get(auto&, Payload&) {}
void get(auto& r, double& v) { v = r.f64(); }
template <class T>
requires std::is_integral_v<T> || std::is_enum_v<T>
void get(auto& r, T& v) {
  if constexpr (std::is_same_v<T, bool>)
    v = r.u8() != 0;
  else if constexpr (sizeof(T) == 1)
    v = static_cast<T>(r.u8());
  else if constexpr (sizeof(T) == 4)
    v = static_cast<T>(r.u32());
  else
    v = static_cast<T>(r.u64());
}
void get(auto& r, std::string& v) { v = r.text(); }
template <Visitable T>
void get(auto& r, T& v);
template <class T>
void get(auto& r, std::vector<T>& v) {
  const uint32_t count = r.u32();
  for (uint32_t i = 0; i < count && r.ok(); ++i) get(r, v.emplace_back());
}
template <Visitable T>
void get(auto& r, T& v) {
  T::visit(v, [&](auto&... fields) { (get(r, fields), ...); });
}

}  // namespace hybridsync
