// Little-endian words and streams of bits, the lowest bit first. The writer stays within `out`, but
// may write beyond what it gives as its length; the reader reads nothing beyond its bytes: what
// would lie there is zero, and then it is not `good`.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace hybridsync {

template <class Word>
Word load_little(const std::byte* at) {
  Word word = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&word, at, sizeof word);
  } else {
    for (size_t i = 0; i < sizeof word; ++i)
      word |= static_cast<Word>(static_cast<Word>(at[i]) << (8 * i));
  }
  return word;
}

template <class Word>
void store_little(std::byte* at, Word word) {
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(at, &word, sizeof word);
  } else {
    for (size_t i = 0; i < sizeof word; ++i) at[i] = static_cast<std::byte>(word >> (8 * i));
  }
}

// Without leading zeros.
constexpr int width_of(uint64_t value) { return static_cast<int>(std::bit_width(value)); }

class BitWriter {
 public:
  explicit BitWriter(std::span<std::byte> out) : out_(out) {}

  // The `bits` (at most 32) low bits of `value`, which has no higher ones.
  void put(uint64_t value, int bits) {
    held_ |= value << count_;
    count_ += bits;
    if (out_.size() - at_ >= 8) {
      store_little(&out_[at_], held_);
      at_ += static_cast<size_t>(count_ / 8);
      held_ >>= count_ / 8 * 8;
      count_ %= 8;
    } else {
      for (; count_ >= 8; count_ -= 8, held_ >>= 8) out_[at_++] = static_cast<std::byte>(held_);
    }
  }

  // Fills the last byte with zeros. How many bytes all of it took.
  size_t finish() {
    if (count_ > 0) out_[at_++] = static_cast<std::byte>(held_);
    count_ = 0;
    return at_;
  }

 private:
  std::span<std::byte> out_;
  size_t at_ = 0;
  uint64_t held_ = 0;
  int count_ = 0;
};

class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // At most 32 bits.
  uint64_t take(int bits) {
    const size_t first = at_ / 8;
    const uint64_t word =
        first + 8 <= bytes_.size() ? load_little<uint64_t>(&bytes_[first]) : last_bytes(first);
    const uint64_t value = word >> (at_ % 8) & ((uint64_t{1} << bits) - 1);
    at_ += static_cast<size_t>(bits);
    return value;
  }

  bool good() const { return used() <= bytes_.size(); }
  // Bytes that were begun.
  size_t used() const { return (at_ + 7) / 8; }

 private:
  uint64_t last_bytes(size_t first) const {
    uint64_t word = 0;
    for (size_t i = first; i < bytes_.size(); ++i)
      word |= static_cast<uint64_t>(bytes_[i]) << (8 * (i - first));
    return word;
  }

  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

}  // namespace hybridsync
