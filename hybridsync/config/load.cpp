#include "hybridsync/config/load.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "hybridsync/config/fill.h"
#include "hybridsync/config/keys.h"
#include "hybridsync/config/overrides.h"
#include "hybridsync/config/place.h"
#include "hybridsync/config/rules.h"
#include "hybridsync/config/toml.h"

namespace hybridsync {
namespace {

std::string read_file(const std::string& path) {
  if (std::filesystem::is_directory(path)) {
    throw ConfigError(path + ": is a folder; name a configuration file");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw ConfigError(path + ": cannot be read: " + std::strerror(errno));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The value in force there, as TOML; empty for a whole tier.
std::string value_in(Config& config, const Place& place) {
  const Key* key = find_key(place.name);
  return key ? key->print(config, place.tier) : "";
}

std::string message_of(const Mistake& mistake, Config& config, const std::string& origin) {
  const Place& place = mistake.place;
  return message(origin, label(place.name, place.tier), value_in(config, place), mistake.complaint);
}

void print_section(std::string& text, const Section& section, Config& config, size_t tier) {
  for (const auto& key : section.keys) {
    const std::string name = key.name.substr(key.name.find('.') + 1);
    text += name + " = " + key.print(config, tier) + "\n";
  }
}

void print_tier(std::string& text, Config& config, size_t tier) {
  text += "\n[[tier]]\n";
  for (const auto& section : sections()) {
    const bool here = section.scope != Scope::run && applies(section.scope, tier);
    if (here) print_section(text, section, config, tier);
  }
}

}  // namespace

Config parse(std::string_view text, const std::string& name, const std::vector<std::string>& sets) {
  Value document = read_toml(text, name);
  for (const auto& set : sets) apply_set(document, set);
  Config config;
  config.source = name;
  fill(config, document);
  if (const auto mistake = complete(config)) {
    const Value* written = written_at(document, mistake->place);
    throw ConfigError(message_of(*mistake, config, written ? written->origin : name));
  }
  return config;
}

Config load(const std::string& path, const std::vector<std::string>& sets) {
  return parse(read_file(path), path, sets);
}

void validate(Config& config) {
  if (const auto mistake = complete(config)) {
    throw ConfigError(message_of(*mistake, config, config.source));
  }
}

std::string to_toml(const Config& config) {
  Config copy = config;
  std::string text;
  for (const auto& section : sections()) {
    if (section.scope != Scope::run) continue;
    text += (text.empty() ? "[" : "\n[") + section.table + "]\n";
    print_section(text, section, copy, 0);
  }
  for (size_t i = 0; i < copy.tiers.size(); ++i) print_tier(text, copy, i);
  return text;
}

std::vector<std::string> known_keys() {
  std::vector<std::string> names;
  for (const auto& section : sections()) {
    for (const auto& key : section.keys) names.push_back(key.name);
  }
  return names;
}

}  // namespace hybridsync
