// The frame around every message between nodes: who says it, about what, and a checksum.
//
// A message's header is an Envelope and typed fields behind it; the payload is the message's body.
// The frame is made and checked by those who talk, not by the Exchange under them: so the checksum
// holds from end to end, over every back end. An Exchange knows by itself which node a message came
// from (by the connection), and decode() refuses an envelope that names another one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "hybridsync/wire/bytes.h"

namespace hybridsync {

inline constexpr uint8_t kProtocolVersion = 2;

struct Envelope {
  uint64_t run = 0;          // hash of the run id
  uint64_t epoch = 0;        // of the view
  uint32_t node = 0;         // sender
  uint32_t incarnation = 0;  // a restarted sender is a new one
  uint8_t kind = 0;          // of message; the meaning is the protocol's
  uint32_t fragment = 0;
  uint64_t version = 0;

  bool operator==(const Envelope&) const = default;
};

inline constexpr size_t kEnvelopeBytes = 56;  // in front of the fields

uint64_t run_hash(std::string_view run_id);

// The header of a message with these fields and this body (sent unchanged beside it).
Bytes encode(const Envelope& envelope, ByteSpan fields, ByteSpan body);

struct Frame {
  Envelope envelope;
  ByteSpan fields;  // into the header: Reader(frame.fields)
};

struct BadFrame {
  std::string why;  // a sentence
};

// What decode() expects: this run, and the node that the message came from.
struct Expected {
  uint64_t run = 0;
  int node = 0;
};

// Any bytes are allowed; the header must outlive the Frame. Checks length, protocol version, run,
// sender, body length and checksum, in this order.
std::variant<Frame, BadFrame> decode(ByteSpan header, ByteSpan body, const Expected& expected);

}  // namespace hybridsync
