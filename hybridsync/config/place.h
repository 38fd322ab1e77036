// Where in the configuration something stands or is wrong.
#pragma once

#include <optional>
#include <string>

#include "hybridsync/config/kind.h"
#include "hybridsync/config/value.h"

namespace hybridsync {

struct Place {
  std::string name;  // "tier.outer.lr", "tier"
  size_t tier = 0;
};

struct Mistake {
  Place place;
  Complaint complaint;
};

// What the user wrote there, or nullptr.
const Value* written_at(const Value& document, const Place& place);

// "hybrid.toml:12: tier[1].every = 0: must be at least 1"; `value` is left out when empty.
std::string message(const std::string& origin, const std::string& label, const std::string& value,
                    const Complaint& complaint);

}  // namespace hybridsync
