#include "hybridsync/simulate/replay.h"

#include <string_view>

namespace hybridsync {
namespace {

constexpr std::string_view kPlain =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=+,:@%";

std::string word(const std::string& text) {
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace

std::string replay_command(const RunSource& source, uint64_t seed) {
  std::string command = "hybridsync simulate";
  if (!source.config.empty()) command += " " + word(source.config);
  for (const std::string& set : source.sets) command += " --set " + word(set);
  if (!source.faults.empty()) command += " --faults " + word(source.faults);
  return command + " --seed " + std::to_string(seed) + " --trace";
}

}  // namespace hybridsync
