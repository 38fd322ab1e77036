#include "hybridsync/config/fill.h"

#include <algorithm>

#include "hybridsync/config/error.h"
#include "hybridsync/config/keys.h"
#include "hybridsync/config/load.h"
#include "hybridsync/config/nearest.h"
#include "hybridsync/config/place.h"
#include "hybridsync/config/presets.h"
#include "hybridsync/config/rules.h"

namespace hybridsync {
namespace {

[[noreturn]] void refuse(const Value& value, const Place& place, const Complaint& complaint) {
  const bool table = value.as<Value::Table>();
  const std::string where = label(place.name, place.tier);
  throw ConfigError(message(value.origin, table ? "[" + where + "]" : where,
                            table ? "" : to_text(value), complaint));
}

std::string table_of(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

// "every" for a table and a key under it ("outer" when deeper), or nothing.
std::string child_of(const std::string& table, const std::string& key) {
  const std::string prefix = table.empty() ? "" : table + ".";
  if (!key.starts_with(prefix)) return "";
  const std::string rest = key.substr(prefix.size());
  return rest.substr(0, rest.find('.'));
}

// What could stand there instead: "lr, momentum" for a key, "train, tier" for a table.
std::string available_beside(const Place& place) {
  const std::string table = table_of(place.name);
  std::vector<std::string> names;
  for (const auto& section : sections()) {
    if (section.scope != Scope::run && !table.empty() && !applies(section.scope, place.tier))
      continue;
    for (const auto& key : section.keys) {
      const std::string name = child_of(table, key.name);
      if (!name.empty() && !std::count(names.begin(), names.end(), name)) names.push_back(name);
    }
  }
  return joined(names);
}

[[noreturn]] void refuse_unknown(const Value& value, const Place& place) {
  const bool table = value.as<Value::Table>();
  if (is_for_later(place.name)) {
    refuse(value, place, "is not available in this version; available: " + available_beside(place));
  }
  std::string remedy = did_you_mean(place.name, table ? known_tables() : known_keys());
  if (remedy.empty()) remedy = "; known here: " + available_beside(place);
  refuse(value, place, (table ? "unknown table" : "unknown key") + remedy);
}

bool is_table_of_keys(const std::string& name) {
  const auto tables = known_tables();
  return std::find(tables.begin(), tables.end(), name) != tables.end();
}

// The outer tier's overlap counts steps; only "none" exists so far.
void read_outer_overlap(const Value& value, const Place& place) {
  const auto* steps = value.as<int64_t>();
  if (steps && *steps == 0) return;
  refuse(value, place,
         "is not available yet: between nodes only overlap = 0 is; off, backward and next_window "
         "belong "
         "to the innermost tier");
}

void read_key(Config& config, const Key& key, const Place& place, const Value& value) {
  if (place.name == "tier.overlap" && place.tier > 0) return read_outer_overlap(value, place);
  const bool in_tier = key.scope != Scope::run;
  if (in_tier && !applies(key.scope, place.tier)) refuse(value, place, misplaced(key));
  const Complaint complaint = key.convert(config, place.tier, value);
  if (!complaint.empty()) refuse(value, place, complaint);
}

void read_table(Config& config, const Place& table, const Value& value);

void read_entry(Config& config, const Place& place, const Value& value) {
  if (const Key* key = find_key(place.name)) return read_key(config, *key, place, value);
  if (!is_table_of_keys(place.name)) refuse_unknown(value, place);
  if (!value.as<Value::Table>()) refuse(value, place, wrong_type("a table", value));
  read_table(config, place, value);
}

void read_table(Config& config, const Place& table, const Value& value) {
  for (const auto& entry : *value.as<Value::Table>()) {
    const Place place{table.name + "." + entry.key, table.tier};
    if (entry.key.find('.') != std::string::npos) refuse_unknown(entry.value, place);
    read_entry(config, place, entry.value);
  }
}

// Whether a tier has this codec.
bool has_codec(const TierConfig& tier, const Value& codec) {
  Config config;
  config.tiers = {tier, tier};
  return find_key("tier.codec")->print(config, 1) == to_text(codec);
}

// Before the tier's own keys are read, so that each of them can be overridden.
void apply_preset(TierConfig& config, size_t i, const Value& tier) {
  const Value* own_codec = nullptr;
  for (const auto& entry : *tier.as<Value::Table>()) {
    if (entry.key == "codec") own_codec = &entry.value;
    const auto* name = entry.key == "strategy" ? entry.value.as<std::string>() : nullptr;
    const Preset* preset = name ? find_preset(*name) : nullptr;
    if (preset && i > 0) preset->apply(config);
    if (preset && i == 0) config.strategy = Strategy::periodic;  // which the rules refuse there
  }
  // A preset's settings of its codec are none of another one.
  if (own_codec && !has_codec(config, *own_codec)) config.codec = {};
}

void read_tiers(Config& config, const Value& tiers) {
  const auto* list = tiers.as<Value::List>();
  if (!list) {
    throw ConfigError(
        message(tiers.origin, "tier", "",
                wrong_type("a list of tables", tiers) + "; write [[tier]] once per tier"));
  }
  for (size_t i = 0; i < list->size(); ++i) {
    const Value& tier = (*list)[i];
    if (!tier.as<Value::Table>()) refuse(tier, {"tier", i}, wrong_type("a table", tier));
    if (i >= kMostTiers) refuse(tier, {"tier", i}, too_many_tiers());
    config.tiers.push_back(default_tier(i));
    apply_preset(config.tiers.back(), i, tier);
    read_table(config, {"tier", i}, tier);
  }
}

}  // namespace

void fill(Config& config, const Value& document) {
  for (const auto& entry : *document.as<Value::Table>()) {
    const bool dotted = entry.key.find('.') != std::string::npos;
    if (entry.key == "tier") {
      read_tiers(config, entry.value);
    } else if (dotted) {
      refuse_unknown(entry.value, {entry.key});
    } else {
      read_entry(config, {entry.key}, entry.value);
    }
  }
}

}  // namespace hybridsync
