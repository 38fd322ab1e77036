// One self-contained HTML file that shows runs side by side: loads nothing, works from file://.
#pragma once

#include <string>
#include <vector>

#include "hybridsync/observe/run_data.h"

namespace hybridsync {

// The page. The first run is the one that the others are compared with.
std::string report_html(const std::vector<RunData>& runs);

// Reads the folders and writes the page. Throws ConfigError when a folder holds no run (it is named
// with what is missing), when there is none, or when `output` cannot be written.
void write_report(const std::vector<std::string>& folders, const std::string& output);

}  // namespace hybridsync
