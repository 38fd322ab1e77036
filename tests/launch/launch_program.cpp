// A launcher to be signalled and killed: launch_program RANKS RANKS_PER_NODE GRACE_MS PROGRAM
// ARGS...
#include <cstdlib>

#include "hybridsync/launch/launcher.h"

int main(int argc, char** argv) {
  hybridsync::LaunchOptions options;
  options.world_size = std::atoi(argv[1]);
  options.ranks_per_node = std::atoi(argv[2]);
  options.grace = std::chrono::milliseconds(std::atoi(argv[3]));
  options.argv.assign(argv + 4, argv + argc);
  return hybridsync::launch(options);
}
