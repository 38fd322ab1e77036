#include "hybridsync/config/place.h"

namespace hybridsync {
namespace {

const Value* element(const Value* list, size_t i) {
  const auto* values = list ? list->as<Value::List>() : nullptr;
  return values && i < values->size() ? &(*values)[i] : nullptr;
}

}  // namespace

const Value* written_at(const Value& document, const Place& place) {
  const Value* value = &document;
  std::string rest = place.name;
  while (value && !rest.empty()) {
    const size_t dot = rest.find('.');
    const std::string part = rest.substr(0, dot);
    rest = dot == std::string::npos ? "" : rest.substr(dot + 1);
    const bool tiers = value == &document && part == "tier";
    value = find(*value, part);
    if (tiers) value = element(value, place.tier);
  }
  return value;
}

std::string message(const std::string& origin, const std::string& label, const std::string& value,
                    const Complaint& complaint) {
  return origin + ": " + label + (value.empty() ? "" : " = " + value) + ": " + complaint;
}

}  // namespace hybridsync
