// Typed fields in bytes: what messages say, little endian and at any alignment.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace hybridsync {

using Bytes = std::vector<std::byte>;
using SharedBytes = std::shared_ptr<const Bytes>;  // published to several peers without copies
using ByteSpan = std::span<const std::byte>;

inline Bytes copy_of(ByteSpan bytes) { return Bytes(bytes.data(), bytes.data() + bytes.size()); }

static_assert(std::endian::native == std::endian::little,
              "fields are copied as they lie in memory");

template <typename T>
concept Field = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

// Appends fields in the order of the calls; the Reader asks for them in the same order.
class Writer {
 public:
  Writer& u8(uint8_t value) { return put(value); }
  Writer& u32(uint32_t value) { return put(value); }
  Writer& u64(uint64_t value) { return put(value); }
  Writer& i64(int64_t value) { return put(value); }
  Writer& f64(double value) { return put(value); }

  // With their length in front. Up to 4 GiB (asserted).
  Writer& bytes(ByteSpan value);
  Writer& text(std::string_view value);
  template <Field T>
  Writer& list(std::span<const T> values) {
    return bytes(std::as_bytes(values));
  }
  template <Field T>
  Writer& list(const std::vector<T>& values) {
    return list(std::span<const T>(values));
  }

  // As they are, without a length: the rest of a message.
  Writer& raw(ByteSpan value);

  ByteSpan view() const { return bytes_; }
  Bytes take() { return std::move(bytes_); }

 private:
  template <typename T>
  Writer& put(T value) {
    return raw(std::as_bytes(std::span<const T, 1>(&value, 1)));
  }
  Bytes bytes_;
};

// Reads what a Writer wrote, from a peer that may lie: a field that is not there reads as zero or
// empty and makes ok() false for good. Never reads past its end, and allocates at most as many
// bytes as are there. The bytes must outlive the Reader and the spans that it returns.
class Reader {
 public:
  explicit Reader(ByteSpan bytes) : rest_(bytes) {}

  uint8_t u8() { return get<uint8_t>(); }
  uint32_t u32() { return get<uint32_t>(); }
  uint64_t u64() { return get<uint64_t>(); }
  int64_t i64() { return get<int64_t>(); }
  double f64() { return get<double>(); }

  ByteSpan bytes();
  std::string text();
  template <Field T>
  std::vector<T> list() {
    const ByteSpan content = bytes();
    if (content.size() % sizeof(T) != 0) fail();
    std::vector<T> values(ok_ ? content.size() / sizeof(T) : 0);
    if (!values.empty()) std::memcpy(values.data(), content.data(), content.size());
    return values;
  }

  // Everything that is left.
  ByteSpan raw() { return take(rest_.size()); }

  bool ok() const { return ok_; }                     // every field so far was there
  bool done() const { return ok_ && rest_.empty(); }  // and nothing else is
  size_t left() const { return rest_.size(); }

 private:
  template <typename T>
  T get() {
    T value{};
    const ByteSpan from = take(sizeof(T));
    if (ok_) std::memcpy(&value, from.data(), sizeof(T));
    return value;
  }
  ByteSpan take(size_t count);
  void fail();

  ByteSpan rest_;
  bool ok_ = true;
};

}  // namespace hybridsync
