// The suite "compression": what codes and intervals cost in quality, and what they save.
#pragma once

#include "hybridsync/launch/suite_plan.h"

namespace hybridsync {

Suite compression_suite();

}  // namespace hybridsync
