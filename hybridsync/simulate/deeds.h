// What seats do, in words, for the traces of simulated runs.
#pragma once

#include <string>

#include "hybridsync/decide/seat.h"

namespace hybridsync {

// "node 2" or "node 2 (process 1)"
std::string words(const Process& process);
std::string words(const View& view);
// Empty for what is told otherwise: messages as they arrive, and what only prepares another action.
std::string words(const Action& action);

}  // namespace hybridsync
