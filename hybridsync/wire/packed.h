// Numbers as typed fields, in few bytes where they hold little: what messages between nodes have in
// front of their bodies. A number takes a byte for each 7 bits up to its highest (LEB128), a
// double those of its bits in reverse order of bytes, so that 64.0 takes three.
#pragma once

#include "hybridsync/wire/bytes.h"

namespace hybridsync {

class PackedWriter {
 public:
  PackedWriter& u8(uint8_t value);
  PackedWriter& u32(uint32_t value) { return u64(value); }
  PackedWriter& u64(uint64_t value);
  PackedWriter& f64(double value);

  ByteSpan view() const { return bytes_.view(); }

 private:
  Writer bytes_;
};

// Reads what a PackedWriter wrote, with a Reader's promises.
class PackedReader {
 public:
  explicit PackedReader(ByteSpan bytes) : bytes_(bytes) {}

  uint8_t u8() { return bytes_.u8(); }
  uint32_t u32();
  uint64_t u64();
  double f64();

  bool ok() const { return ok_ && bytes_.ok(); }
  bool done() const { return ok_ && bytes_.done(); }

 private:
  Reader bytes_;
  bool ok_ = true;
};

}  // namespace hybridsync
