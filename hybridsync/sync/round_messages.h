// The messages of decide/messages.h as bytes: an envelope and fields in the header, the numbers in
// the body. Payload handles do not travel; how the body is divided tells which payloads there are.
#pragma once

#include <optional>

#include "hybridsync/decide/messages.h"
#include "hybridsync/wire/bytes.h"
#include "hybridsync/wire/frame.h"

namespace hybridsync {

// How a body is divided: a fragment's numbers (of STATE: the anchor), then what goes beside them
// (side data; of STATE: the outer optimizer's buffer).
struct BodyLayout {
  uint64_t values_bytes = 0;
  uint64_t side_bytes = 0;
  static void visit(auto& s, auto&& f) { f(s.values_bytes, s.side_bytes); }
  bool operator==(const BodyLayout&) const = default;
};

struct WireMessage {
  Message message;  // payload handles are empty
  BodyLayout layout;
};

// The header of a message with this body, in this run.
Bytes encode(const WireMessage& message, uint64_t run, ByteSpan body);

// Of a frame that decode() accepted. Nothing when the fields are cut short, have a tail, or hold
// what no member sends (a negative or non-finite weight, a mode out of range).
std::optional<WireMessage> read_message(const Frame& frame);

}  // namespace hybridsync
