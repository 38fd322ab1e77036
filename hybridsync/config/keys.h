// Every key of the configuration, once: its place, its kind, its documentation. Reading, checking,
// printing, suggestions and the reference document all follow from this table.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hybridsync/config/config.h"
#include "hybridsync/config/kind.h"

namespace hybridsync {

// Which tables a key may stand in. Keys of the run have one value; those of tiers one per tier.
enum class Scope { run, every_tier, innermost_tier, outer_tier };

struct Key {
  std::string name;  // "train.lr", "tier.outer.lr"
  Scope scope;
  std::string description;    // of its values
  std::string documentation;  // of what it does
  // For keys of the run, `tier` means nothing.
  std::function<Complaint(Config&, size_t tier, const Value&)> convert;
  std::function<Complaint(Config&, size_t tier)> check;
  std::function<std::string(Config&, size_t tier)> print;
};

// Keys that are documented together, in the reference's order.
struct Section {
  std::string table;  // "train", "tier"
  Scope scope;
  std::string text;
  std::vector<Key> keys;
};

const std::vector<Section>& sections();

// Nullptr when there is none.
const Key* find_key(const std::string& name);

// "train", "tier", "tier.outer": the tables that hold keys.
std::vector<std::string> known_tables();

// Keys and tables of the design that this version refuses by name.
bool is_for_later(const std::string& name);

// Whether the tier may have the key: some belong only to the innermost tier, some only to the
// others.
bool applies(Scope scope, size_t tier);

// What a tier is before its table is read: only the name depends on its place.
TierConfig default_tier(size_t tier);

// "tier[1].every" for ("tier.every", 1); keys of the run stay as they are.
std::string label(const std::string& name, size_t tier);

}  // namespace hybridsync
