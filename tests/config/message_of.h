// The message of a ConfigError that a call throws; the empty text when it throws none.
#pragma once

#include <string>

#include "hybridsync/config/error.h"

namespace hybridsync {

template <class F>
std::string message_of(F call) {
  try {
    call();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace hybridsync
