// The frame around every message between nodes.
#include "hybridsync/wire/frame.h"

#include <xxhash.h>

#include <memory>

namespace hybridsync {
namespace {

constexpr uint8_t kMagic = 0xb5;
constexpr size_t kChecksumBytes = 8;
constexpr size_t kCoveredBytes = kEnvelopeBytes - kChecksumBytes;

// Over the envelope without its checksum, the fields and the body.
uint64_t checksum(ByteSpan envelope, ByteSpan fields, ByteSpan body) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  XXH3_64bits_reset(state.get());
  for (const ByteSpan part : {envelope, fields, body}) {
    if (!part.empty()) XXH3_64bits_update(state.get(), part.data(), part.size());
  }
  return XXH3_64bits_digest(state.get());
}

BadFrame differs(const std::string& what, const std::string& got, const std::string& expected) {
  return {"a frame has " + what + " " + got + " instead of " + expected};
}

BadFrame differs(const std::string& what, uint64_t got, uint64_t expected) {
  return differs(what, std::to_string(got), std::to_string(expected));
}

}  // namespace

uint64_t run_hash(std::string_view run_id) { return XXH3_64bits(run_id.data(), run_id.size()); }

Bytes encode(const Envelope& envelope, ByteSpan fields, ByteSpan body) {
  Writer writer;
  writer.u8(kMagic).u8(kProtocolVersion).u8(envelope.kind).u8(0);
  writer.u32(envelope.node).u32(envelope.incarnation).u32(envelope.fragment);
  writer.u64(envelope.run).u64(envelope.epoch).u64(envelope.version).u64(body.size());
  writer.u64(checksum(writer.view(), fields, body)).raw(fields);
  return writer.take();
}

std::variant<Frame, BadFrame> decode(ByteSpan header, ByteSpan body, const Expected& expected) {
  if (header.size() < kEnvelopeBytes) {
    return differs("a header of", header.size(), kEnvelopeBytes);
  }
  Reader reader(header);
  Frame frame;
  Envelope& envelope = frame.envelope;
  const uint8_t magic = reader.u8();
  if (magic != kMagic) return differs("the first byte", magic, kMagic);
  const uint8_t protocol = reader.u8();
  if (protocol != kProtocolVersion) {
    return differs("protocol version", protocol, kProtocolVersion);
  }
  envelope.kind = reader.u8();
  const uint8_t reserved = reader.u8();
  if (reserved != 0) return differs("a reserved byte", reserved, 0);
  envelope.node = reader.u32();
  envelope.incarnation = reader.u32();
  envelope.fragment = reader.u32();
  envelope.run = reader.u64();
  envelope.epoch = reader.u64();
  envelope.version = reader.u64();
  const uint64_t body_bytes = reader.u64();
  const uint64_t sum = reader.u64();
  frame.fields = reader.raw();
  if (envelope.run != expected.run) return differs("run", envelope.run, expected.run);
  if (envelope.node != static_cast<uint32_t>(expected.node)) {
    return differs("sender", envelope.node, static_cast<uint64_t>(expected.node));
  }
  if (body_bytes != body.size()) return differs("a body of", body.size(), body_bytes);
  if (sum != checksum(header.first(kCoveredBytes), frame.fields, body)) {
    return BadFrame{"a frame of node " + std::to_string(envelope.node) + " has a wrong checksum"};
  }
  return frame;
}

}  // namespace hybridsync
