// TOML text to values. The only source that knows the TOML library is toml.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "hybridsync/config/value.h"

namespace hybridsync {

// A whole document as a table; origins are "name:line". Throws ConfigError with the line of a
// syntax error.
Value read_toml(std::string_view text, const std::string& name);

// One value, or nothing when the text is not one; all its parts have this origin.
std::optional<Value> read_toml_value(std::string_view text, const std::string& origin);

}  // namespace hybridsync
