#include "hybridsync/simulate/fault.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "hybridsync/config/error.h"
#include "hybridsync/config/kind.h"
#include "hybridsync/config/nearest.h"
#include "hybridsync/config/place.h"
#include "hybridsync/config/toml.h"
#include "hybridsync/config/units.h"

namespace hybridsync {
namespace {

constexpr double kMostFactor = 1e5;
const std::vector<std::string> kKeys = {"at", "kind", "node", "nodes", "factor", "for"};

bool takes_factor(FaultKind kind) { return kind == FaultKind::slow || kind == FaultKind::drift; }
bool is_for_good(FaultKind kind) { return kind == FaultKind::finish || kind == FaultKind::leave; }
bool is_of_pairs(FaultKind kind) { return kind == FaultKind::cut || kind == FaultKind::broken; }

std::vector<std::string> kinds() { return {kFaultNames.begin(), kFaultNames.end()}; }

// One [[fault]] while it is read.
class Reading {
 public:
  Reading(const Value& table, size_t number, int nodes)
      : table_(table), label_("fault[" + std::to_string(number) + "]"), nodes_(nodes) {}

  Fault fault() {
    if (!table_.as<Value::Table>()) refuse(table_, "", wrong_type("a table", table_));
    for (const Entry& entry : *table_.as<Value::Table>()) known(entry);
    Fault f;
    f.at = time("at", needed("at"));
    f.kind = kind(needed("kind"));
    if (const Value* v = find(table_, "for")) f.lasts = lasting(f.kind, *v);
    f.nodes = hit(f.kind);
    factor(f);
    check_coordinator(f);
    return f;
  }

 private:
  [[noreturn]] void refuse(const Value& value, const std::string& key,
                           const Complaint& complaint) const {
    const bool table = value.as<Value::Table>();
    throw ConfigError(message(value.origin, label_ + (key.empty() ? "" : "." + key),
                              table ? "" : to_text(value), complaint));
  }
  void known(const Entry& entry) const {
    if (std::count(kKeys.begin(), kKeys.end(), entry.key)) return;
    const std::string remedy = did_you_mean(entry.key, kKeys);
    refuse(entry.value, entry.key,
           "unknown key" + (remedy.empty() ? "; known here: " + joined(kKeys) : remedy));
  }
  const Value& needed(const std::string& key) const {
    const Value* value = find(table_, key);
    if (!value) refuse(table_, key, "is missing; a fault needs at, kind and the node that it hits");
    return *value;
  }
  Micros time(const std::string& key, const Value& value) const {
    double seconds = 0;
    const auto kind = duration({0, 1e6});
    Complaint complaint = kind.convert(value, seconds);
    if (complaint.empty()) complaint = kind.check(seconds);
    if (!complaint.empty()) refuse(value, key, complaint);
    return std::llround(seconds * 1e6);
  }
  Micros lasting(FaultKind kind, const Value& value) const {
    if (is_for_good(kind))
      refuse(value, "for", "a node that has finished or left does not come back; remove it");
    const Micros lasts = time("for", value);
    if (lasts == 0)
      refuse(value, "for", "must be more than 0; leave it out for a fault that stays");
    return lasts;
  }
  FaultKind kind(const Value& value) const {
    size_t index = 0;
    const Complaint complaint = choose(value, {kinds()}, index);
    if (!complaint.empty()) refuse(value, "kind", complaint);
    return static_cast<FaultKind>(index);
  }
  int node(const std::string& key, const Value& value) const {
    const auto* number = value.as<int64_t>();
    if (!number) refuse(value, key, wrong_type("the number of a node", value));
    const Complaint complaint = outside(*number, 0, nodes_ - 1);
    if (!complaint.empty())
      refuse(value, key, complaint + ": there are " + std::to_string(nodes_) + " nodes");
    return static_cast<int>(*number);
  }
  std::vector<int> hit(FaultKind kind) const {
    const bool several = is_of_pairs(kind) || kind == FaultKind::partition;
    const std::string key = several ? "nodes" : "node", other = several ? "node" : "nodes";
    if (const Value* wrong = find(table_, other))
      refuse(*wrong, other, "a fault of this kind has `" + key + "`");
    const Value& value = needed(key);
    if (!several) return {node(key, value)};
    const auto* list = value.as<Value::List>();
    if (!list) refuse(value, key, wrong_type("a list of nodes", value));
    std::vector<int> nodes;
    for (const Value& one : *list) nodes.push_back(node(key, one));
    std::sort(nodes.begin(), nodes.end());
    const bool twice = std::adjacent_find(nodes.begin(), nodes.end()) != nodes.end();
    const bool fits = is_of_pairs(kind)
                          ? nodes.size() == 2
                          : !nodes.empty() && nodes.size() < static_cast<size_t>(nodes_);
    if (twice || !fits)
      refuse(value, key,
             is_of_pairs(kind) ? "must be two different nodes"
                               : "must be different nodes, and not all that there are");
    return nodes;
  }
  // Without it views do not change any more, and nothing could be promised.
  void check_coordinator(const Fault& f) const {
    const bool goes =
        f.kind == FaultKind::crash || f.kind == FaultKind::power_off || f.kind == FaultKind::leave;
    if (goes && f.lasts == 0 && f.nodes[0] == 0)
      refuse(needed("node"), "node",
             "is where the coordinator runs: it has to come back; give `for`, or another node");
  }
  void factor(Fault& f) const {
    const Value* value = find(table_, "factor");
    if (!value && takes_factor(f.kind)) (void)needed("factor");
    if (!value) return;
    if (!takes_factor(f.kind)) refuse(*value, "factor", "only slow and drift have a factor");
    const bool drift = f.kind == FaultKind::drift;
    const auto range = number({drift ? -kMostFactor : 1.0, drift ? kMostFactor : 1000.0});
    Complaint complaint = range.convert(*value, f.factor);
    if (complaint.empty()) complaint = range.check(f.factor);
    if (!complaint.empty()) refuse(*value, "factor", complaint);
  }

  const Value& table_;
  std::string label_;
  int nodes_;
};

// In the largest unit of which it is one or more, with six digits at the most.
std::string text_of(Micros time) {
  const double seconds = static_cast<double>(time) / 1e6;
  const auto& units = duration_units();
  const auto in = [&](const Unit& unit) { return seconds / unit.times * unit.per; };
  auto unit = std::find_if(units.begin(), units.end(), [&](const Unit& u) { return in(u) >= 1; });
  if (unit == units.end())
    unit = std::find_if(units.begin(), units.end(), [](const Unit& u) { return u.name == "s"; });
  char number[32];
  std::snprintf(number, sizeof number, "%.6g", in(*unit));
  return std::string(number) + " " + unit->name;
}

}  // namespace

std::string_view name(FaultKind kind) { return kFaultNames[static_cast<size_t>(kind)]; }

std::string to_text(const Fault& fault) {
  std::string text = text_of(fault.at) + ": " + std::string(name(fault.kind)) + " of node";
  for (int node : fault.nodes) text += (node == fault.nodes[0] ? " " : ", ") + std::to_string(node);
  if (takes_factor(fault.kind)) text += " by " + number_text(fault.factor);
  if (fault.lasts > 0) return text + " for " + text_of(fault.lasts);
  return is_for_good(fault.kind) ? text : text + " for good";
}

std::vector<Fault> parse_faults(std::string_view text, const std::string& name, int nodes) {
  const Value document = read_toml(text, name);
  std::vector<Fault> faults;
  for (const Entry& entry : *document.as<Value::Table>()) {
    if (entry.key != "fault")
      throw ConfigError(message(entry.value.origin, entry.key, "",
                                "unknown table; a list of faults has [[fault]] only"));
    const auto* list = entry.value.as<Value::List>();
    if (!list)
      throw ConfigError(message(entry.value.origin, entry.key, "",
                                "must be a list of tables; write [[fault]] once per fault"));
    for (size_t i = 0; i < list->size(); ++i)
      faults.push_back(Reading((*list)[i], i, nodes).fault());
  }
  std::stable_sort(faults.begin(), faults.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
  return faults;
}

std::vector<Fault> load_faults(const std::string& path, int nodes) {
  if (std::filesystem::is_directory(path))
    throw ConfigError(path + ": is a folder; name a file of faults");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw ConfigError(path + ": cannot be read: " + std::strerror(errno));
  std::ostringstream text;
  text << file.rdbuf();
  return parse_faults(text.str(), path, nodes);
}

}  // namespace hybridsync
