#include "hybridsync/launch/train_command.h"

namespace hybridsync {

std::vector<std::string> rank_argv(const TrainCommand& command) {
  std::vector<std::string> argv = {"/proc/self/exe", "train", command.config};
  for (const std::string& set : command.sets) {
    argv.push_back("--set");
    argv.push_back(set);
  }
  if (command.json) argv.push_back("--json");
  if (command.brief) argv.push_back("--brief");
  return argv;
}

}  // namespace hybridsync
