// What coding did and took, summed up.
#pragma once

#include <cstdint>

namespace hybridsync {

struct CodingCosts {
  int64_t bytes_before = 0;  // of the plain numbers of everything that was to be coded
  int64_t bytes_after = 0;   // of what they became
  int64_t plain = 0;         // times that a code would not have been shorter
  double encode_seconds = 0;
  double decode_seconds = 0;

  CodingCosts& operator+=(const CodingCosts& o) {
    bytes_before += o.bytes_before;
    bytes_after += o.bytes_after;
    plain += o.plain;
    encode_seconds += o.encode_seconds;
    decode_seconds += o.decode_seconds;
    return *this;
  }
  static void visit(auto& s, auto&& f) {
    f(s.bytes_before, s.bytes_after, s.plain, s.encode_seconds, s.decode_seconds);
  }
  bool operator==(const CodingCosts&) const = default;
};

}  // namespace hybridsync
