// Numbers in few bits each, in groups that share a code book of magnitudes; the first bit of each
// number is its sign. For selected numbers, whose magnitudes begin far from zero:
//
//   16 bits   bfloat16, rounded to the nearest, ties to even, never to infinity
//   8, 4      low + j step between the least and the largest magnitude of 256 or 128 numbers
//   2         the means of the smaller and of the larger magnitudes of 256 numbers
//   1         the mean magnitude of 256 numbers
//
// low and step are bfloat16, so a group's code book takes 4 bytes, and 2 with 1 bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hybridsync {

inline constexpr size_t kLargestGroup = 256;

bool is_value_bits(int bits);  // 16, 8, 4, 2 or 1
size_t group_size(int bits);
size_t packed_size(size_t count, int bits);

// Packs finite numbers, as many as a group has or fewer, into packed_size of them at `out`, and
// writes what that leaves out of each to `left_out`.
void pack_group(std::span<const float> u, int bits, std::byte* out, float* left_out);

// False: not finite. `code` has packed_size(out.size(), bits) bytes.
[[nodiscard]] bool unpack(std::span<const std::byte> code, int bits, std::span<float> out);

}  // namespace hybridsync
