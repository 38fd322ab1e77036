#include "hybridsync/launch/train_command.h"

#include <cctype>
#include <cstring>

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

std::string typed(const TrainCommand& command) {
  std::string text = "hybridsync train " + shell_word(command.config);
  for (const std::string& set : command.sets) text += " --set " + shell_word(set);
  return text;
}

std::string shell_word(const std::string& text) {
  std::string quoted = "'";
  bool plain = !text.empty();
  for (const char c : text) {
    plain = plain && (std::isalnum(static_cast<unsigned char>(c)) || std::strchr("._-=/:,+", c));
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return plain ? text : quoted + "'";
}

}  // namespace hybridsync
