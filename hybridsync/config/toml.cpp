#include "hybridsync/config/toml.h"

// The parser asserts what a wrong text can break ("[?") and reports it properly right after.
// Neither an abort nor, with NDEBUG, an assumption for the optimizer may come of it.
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <algorithm>
#include <functional>

#include "hybridsync/config/error.h"

namespace hybridsync {
namespace {

using Origin = std::function<std::string(const toml::source_region&)>;

Value value_of(const toml::node& node, const Origin& origin);

// toml++ sorts tables by key; messages should come in the order of the text.
Value::Table entries_of(const toml::table& table, const Origin& origin) {
  std::vector<std::pair<toml::source_position, Entry>> entries;
  for (const auto& [key, node] : table) {
    entries.push_back({key.source().begin, {std::string(key.str()), value_of(node, origin)}});
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  Value::Table result;
  for (auto& [position, entry] : entries) result.push_back(std::move(entry));
  return result;
}

Value::List list_of(const toml::array& array, const Origin& origin) {
  Value::List result;
  for (const auto& node : array) result.push_back(value_of(node, origin));
  return result;
}

Value value_of(const toml::node& node, const Origin& origin) {
  Value value{Value::Moment{}, origin(node.source())};
  if (const auto* table = node.as_table()) value.data = entries_of(*table, origin);
  if (const auto* array = node.as_array()) value.data = list_of(*array, origin);
  if (const auto* text = node.as_string()) value.data = text->get();
  if (const auto* integer = node.as_integer()) value.data = integer->get();
  if (const auto* number = node.as_floating_point()) value.data = number->get();
  if (const auto* flag = node.as_boolean()) value.data = flag->get();
  return value;
}

std::string place(const std::string& name, const toml::source_region& region) {
  return name + ":" + std::to_string(region.begin.line);
}

}  // namespace

Value read_toml(std::string_view text, const std::string& name) {
  try {
    const toml::table table = toml::parse(text);
    return value_of(table, [&](const auto& region) { return place(name, region); });
  } catch (const toml::parse_error& error) {
    throw ConfigError(place(name, error.source()) +
                      ": not TOML: " + std::string(error.description()) + " (column " +
                      std::to_string(error.source().begin.column) + ")");
  }
}

std::optional<Value> read_toml_value(std::string_view text, const std::string& origin) {
  try {
    const toml::table table = toml::parse("value = " + std::string(text));
    if (table.size() != 1) return std::nullopt;
    return value_of(*table.get("value"), [&](const auto&) { return origin; });
  } catch (const toml::parse_error&) {
    return std::nullopt;
  }
}

}  // namespace hybridsync
