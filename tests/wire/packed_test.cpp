// Typed fields in few bytes.
#include "hybridsync/wire/packed.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <random>

namespace hybridsync {
namespace {

constexpr size_t kMostPackedBytes = 10;  // of one number

size_t bytes_of(uint64_t value) {
  PackedWriter writer;
  writer.u64(value);
  PackedReader reader(writer.view());
  EXPECT_EQ(reader.u64(), value);
  EXPECT_TRUE(reader.done());
  return writer.view().size();
}

TEST(Packed, SmallNumbersAreShort) {
  EXPECT_EQ(bytes_of(0), 1u);
  EXPECT_EQ(bytes_of(127), 1u);
  EXPECT_EQ(bytes_of(128), 2u);
  EXPECT_EQ(bytes_of((1u << 14) - 1), 2u);
  EXPECT_EQ(bytes_of(1u << 14), 3u);
  EXPECT_EQ(bytes_of(std::numeric_limits<uint64_t>::max()), kMostPackedBytes);
}

TEST(Packed, DoublesKeepTheirBits) {
  for (double value :
       {0.0, -0.0, 1.0, 64.0, -3.5, 0.1, 1e-310, std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN()}) {
    PackedWriter writer;
    writer.f64(value);
    PackedReader reader(writer.view());
    EXPECT_EQ(std::bit_cast<uint64_t>(reader.f64()), std::bit_cast<uint64_t>(value));
    EXPECT_TRUE(reader.done());
    if (value == 64) {
      EXPECT_EQ(writer.view().size(), 3u);
    }
  }
}

TEST(Packed, EveryKindOfField) {
  PackedWriter writer;
  writer.u8(200).u32(1u << 31).u64(7).f64(-2.25);
  PackedReader reader(writer.view());
  EXPECT_EQ(reader.u8(), 200);
  EXPECT_EQ(reader.u32(), 1u << 31);
  EXPECT_EQ(reader.u64(), 7u);
  EXPECT_EQ(reader.f64(), -2.25);
  EXPECT_TRUE(reader.done());
}

TEST(Packed, WhatIsNotThereReadsAsNothing) {
  PackedWriter writer;
  writer.u64(1u << 20).f64(0.1);
  for (size_t length = 0; length < writer.view().size(); ++length) {
    PackedReader reader(writer.view().first(length));
    const uint64_t number = reader.u64();
    EXPECT_EQ(number, length < 3 ? 0 : 1u << 20);
    EXPECT_EQ(reader.f64(), 0);
    EXPECT_FALSE(reader.ok()) << length;
    EXPECT_EQ(reader.u64(), 0u);
  }
}

TEST(Packed, TooLargeNumbersAreRefused) {
  const Bytes ones(kMostPackedBytes + 1, std::byte{0xff});
  PackedReader endless(ones);
  EXPECT_EQ(endless.u64(), 0u);
  EXPECT_FALSE(endless.ok());

  Bytes bits65(kMostPackedBytes, std::byte{0x80});
  bits65.back() = std::byte{2};
  PackedReader large(bits65);
  EXPECT_EQ(large.u64(), 0u);
  EXPECT_FALSE(large.ok());

  PackedWriter writer;
  writer.u64(uint64_t{1} << 32);
  PackedReader narrow(writer.view());
  EXPECT_EQ(narrow.u32(), 0u);
  EXPECT_FALSE(narrow.ok());
}

TEST(Packed, AnyBytesAreReadWithinTheirEnd) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    Bytes bytes(random() % 24);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    PackedReader reader(bytes);
    size_t shortest = 0;  // that what was read could be written in
    while (reader.ok() && !reader.done()) {
      const uint64_t number = reader.u64();
      if (reader.ok()) shortest += bytes_of(number);
    }
    EXPECT_LE(shortest, bytes.size()) << "it made up bytes";
  }
}

}  // namespace
}  // namespace hybridsync
