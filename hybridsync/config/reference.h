// The reference of all keys as Markdown; docs/reference/configuration.md is this text.
#pragma once

#include <string>

namespace hybridsync {

std::string reference_markdown();

}  // namespace hybridsync
