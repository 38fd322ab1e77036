// Time as the machines see it.
#pragma once

#include <cstdint>

namespace hybridsync {

// Time of one node's own clock in microseconds; clocks of hosts are never compared. Also a
// duration.
using Micros = int64_t;

}  // namespace hybridsync
