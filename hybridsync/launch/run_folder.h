// The folder of a run, claimed before its ranks start.
#pragma once

#include <string>

namespace hybridsync {

// Creates the folder. Throws ConfigError when it holds anything or cannot be created.
void claim_run_folder(const std::string& folder);

// Removes the folder when the run left nothing in it.
void release_run_folder(const std::string& folder);

}  // namespace hybridsync
