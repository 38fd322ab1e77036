// CONTRIBUTE and RESULT as fields of a frame, and LEAVE, which has none. Payloads travel in the
// frame's body: the fragment's numbers, then the side data.
#pragma once

#include <optional>

#include "hybridsync/decide/messages.h"
#include "hybridsync/wire/bytes.h"

namespace hybridsync {

// leave: sent on both channels as the last message.
enum class MessageKind : uint8_t { contribute = 1, result = 2, leave = 3 };

// How a body is divided. Bytes of side data follow the numbers.
struct BodyLayout {
  uint64_t values_bytes = 0;
  uint64_t side_bytes = 0;
};

struct ContributionFields {
  Contribution contribution;  // payload handles are empty
  BodyLayout body;
};
struct ResultFields {
  Result result;
  BodyLayout body;
};

void write(const ContributionFields& fields, Writer& writer);
void write(const ResultFields& fields, Writer& writer);

// Nothing when the fields are cut short, have a tail, or hold what no member sends (a negative or
// non-finite weight, a mode out of range).
std::optional<ContributionFields> read_contribution(Reader reader);
std::optional<ResultFields> read_result(Reader reader);

}  // namespace hybridsync
