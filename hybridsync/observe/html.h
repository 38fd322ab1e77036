// Text into HTML, safely.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "hybridsync/observe/record_json.h"

namespace hybridsync {

// For text and for attributes in double quotes.
std::string escaped(std::string_view text);

// JSON that may stand inside a <script> element: no "<" is left in it.
std::string script_json(const Json& json);

// Puts values in place of {{name}}, in one pass: what a value holds is never looked at again. A
// name without a value is our bug.
std::string filled(std::string_view page, const std::map<std::string_view, std::string>& values);

}  // namespace hybridsync
