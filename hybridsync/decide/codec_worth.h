// Does a codec pay? Where rounds make training wait, waiting for fewer bytes is what it gains.
#pragma once

#include <cstdint>
#include <string>

namespace hybridsync {

// What rounds took so far at one node.
struct CodecTimes {
  int64_t rounds = 0;
  int64_t bytes_before = 0;    // plain
  int64_t bytes_after = 0;     // as codes
  double coding_seconds = 0;   // encoding and decoding
  double waiting_seconds = 0;  // of training for rounds, coding included
};

// How much longer training would have waited at most for plain numbers: the wait without coding is
// all counted as transfer, which takes as long as there are bytes.
double most_saved_seconds(const CodecTimes& times);

// Before so many rounds nothing is said.
inline constexpr int64_t kRoundsToJudgeCodec = 8;

// A sentence for the user when coding took more than it can have saved; empty otherwise, and too
// early to tell.
std::string codec_complaint(const CodecTimes& times);

}  // namespace hybridsync
