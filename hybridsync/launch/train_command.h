// The command line that each rank of `hybridsync train` runs.
#pragma once

#include <string>
#include <vector>

namespace hybridsync {

struct TrainCommand {
  std::string config;             // path
  std::vector<std::string> sets;  // overrides in the form of --set
  bool json = false;              // the summary as JSON on standard output, nothing else there
  bool brief = false;             // no summary at the end
};

// This program again, as one rank.
std::vector<std::string> rank_argv(const TrainCommand& command);

// As one would type it, and a word of such a line, in quotes where a shell needs them.
std::string typed(const TrainCommand& command);
std::string shell_word(const std::string& text);

}  // namespace hybridsync
