#include "hybridsync/wire/packed.h"

#include <limits>

namespace hybridsync {
namespace {

constexpr int kBits = 7;
constexpr uint64_t kMore = 1u << kBits;

uint64_t reversed(uint64_t value) { return __builtin_bswap64(value); }

}  // namespace

PackedWriter& PackedWriter::u8(uint8_t value) {
  bytes_.u8(value);
  return *this;
}

PackedWriter& PackedWriter::u64(uint64_t value) {
  for (; value >= kMore; value >>= kBits) bytes_.u8(static_cast<uint8_t>(value | kMore));
  bytes_.u8(static_cast<uint8_t>(value));
  return *this;
}

PackedWriter& PackedWriter::f64(double value) {
  return u64(reversed(std::bit_cast<uint64_t>(value)));
}

uint64_t PackedReader::u64() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += kBits) {
    const uint64_t byte = bytes_.u8();
    const uint64_t digit = byte & (kMore - 1);
    if (digit << shift >> shift != digit) break;  // more than 64 bits
    value |= digit << shift;
    if (byte < kMore) return ok() ? value : 0;
  }
  ok_ = false;
  return 0;
}

uint32_t PackedReader::u32() {
  const uint64_t value = u64();
  if (value > std::numeric_limits<uint32_t>::max()) ok_ = false;
  return ok_ ? static_cast<uint32_t>(value) : 0;
}

double PackedReader::f64() { return std::bit_cast<double>(reversed(u64())); }

}  // namespace hybridsync
