#include "hybridsync/decide/codec_worth.h"

#include <algorithm>
#include <cstdio>

namespace hybridsync {
namespace {

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g ms", 1e3 * seconds);
  return text;
}

}  // namespace

double most_saved_seconds(const CodecTimes& t) {
  if (t.bytes_after == 0) return 0;
  const double transfer = std::max(0.0, t.waiting_seconds - t.coding_seconds);
  const double ratio = static_cast<double>(t.bytes_before) / static_cast<double>(t.bytes_after);
  return transfer * std::max(0.0, ratio - 1);
}

std::string codec_complaint(const CodecTimes& t) {
  const double saved = most_saved_seconds(t);
  if (t.rounds < kRoundsToJudgeCodec || t.coding_seconds <= saved) return "";
  const double rounds = static_cast<double>(t.rounds);
  return "coding takes " + milliseconds(t.coding_seconds / rounds) +
         " per round and saves at most " + milliseconds(saved / rounds) +
         ": on a link as fast as this one codec = \"fp32\" is faster";
}

}  // namespace hybridsync
