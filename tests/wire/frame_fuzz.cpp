// Throws any bytes at the frame decoder: the entry point of libFuzzer, and of frame_test's
// mutations.
#include "frame_fuzz.h"

#include <cstdlib>

#include "hybridsync/wire/frame.h"

namespace {

using namespace hybridsync;

// Reads every kind of field from what is there, in an order that the bytes choose.
void read_all(ByteSpan bytes) {
  Reader reader(bytes);
  size_t elements = 0;
  while (reader.ok() && reader.left() > 0) {
    switch (reader.u8() % 9) {
      case 0:
        reader.u32();
        break;
      case 1:
        reader.u64();
        break;
      case 2:
        reader.i64();
        break;
      case 3:
        reader.f64();
        break;
      case 4:
        elements += reader.bytes().size();
        break;
      case 5:
        elements += reader.text().size();
        break;
      case 6:
        elements += reader.list<double>().size();
        break;
      case 7:
        elements += reader.list<uint32_t>().size();
        break;
      default:
        break;
    }
  }
  if (elements > bytes.size()) std::abort();  // it made up bytes
}

}  // namespace

// The first byte says where the header ends and the body begins, in 255ths.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const ByteSpan bytes = std::as_bytes(std::span(data + 1, size - 1));
  const size_t header_bytes = bytes.size() * data[0] / 255;
  const ByteSpan header = bytes.first(header_bytes);
  const auto result = decode(header, bytes.subspan(header_bytes), {run_hash("run"), 1});
  if (const auto* frame = std::get_if<Frame>(&result)) {
    if (frame->fields.size() + kEnvelopeBytes != header_bytes) std::abort();
    read_all(frame->fields);
  } else if (std::get<BadFrame>(result).why.empty()) {
    std::abort();
  }
  read_all(header);
  return 0;
}
