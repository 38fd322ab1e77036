// Typed fields in bytes.
#include "hybridsync/wire/bytes.h"

#include <cassert>
#include <limits>

namespace hybridsync {

Writer& Writer::bytes(ByteSpan value) {
  assert(value.size() <= std::numeric_limits<uint32_t>::max());
  return u32(static_cast<uint32_t>(value.size())).raw(value);
}

Writer& Writer::text(std::string_view value) {
  return bytes(std::as_bytes(std::span<const char>(value)));
}

Writer& Writer::raw(ByteSpan value) {
  bytes_.insert(bytes_.end(), value.data(), value.data() + value.size());
  return *this;
}

ByteSpan Reader::bytes() { return take(u32()); }

std::string Reader::text() {
  const ByteSpan content = bytes();
  return std::string(reinterpret_cast<const char*>(content.data()), content.size());
}

ByteSpan Reader::take(size_t count) {
  if (count > rest_.size()) fail();
  if (!ok_) return {};
  const ByteSpan taken = rest_.first(count);
  rest_ = rest_.subspan(count);
  return taken;
}

void Reader::fail() {
  ok_ = false;
  rest_ = {};
}

}  // namespace hybridsync
