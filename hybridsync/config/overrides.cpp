#include "hybridsync/config/overrides.h"

#include <algorithm>
#include <charconv>

#include "hybridsync/config/error.h"
#include "hybridsync/config/keys.h"
#include "hybridsync/config/nearest.h"
#include "hybridsync/config/toml.h"

namespace hybridsync {
namespace {

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// "tier[1].every" as "tier.1.every".
std::vector<std::string> parts_of(std::string key) {
  std::erase(key, ']');
  std::replace(key.begin(), key.end(), '[', '.');
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= key.size();) {
    const size_t end = std::min(key.find('.', begin), key.size());
    parts.push_back(trimmed(key.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

class Override {
 public:
  Override(Value& document, const std::string& assignment)
      : document_(document), origin_("--set " + assignment) {
    const size_t equals = assignment.find('=');
    if (equals == std::string::npos) fail("expected KEY=VALUE, for example train.lr=0.1");
    parts_ = parts_of(trimmed(assignment.substr(0, equals)));
    for (const auto& part : parts_) {
      if (part.empty()) fail("expected KEY=VALUE, for example train.lr=0.1");
    }
    const std::string text = trimmed(assignment.substr(equals + 1));
    value_ = read_toml_value(text, origin_).value_or(Value{text, origin_});
  }

  void apply() {
    Value* slot = &document_;
    for (size_t i = 0; i < parts_.size(); ++i) {
      slot = i == 1 && parts_[0] == "tier" ? &tier(*slot, parts_[1]) : &member(*slot, i);
    }
    *slot = std::move(value_);
  }

 private:
  [[noreturn]] void fail(const std::string& complaint) const {
    throw ConfigError(origin_ + ": " + complaint);
  }

  // The i-th part inside `table`, added when it is not there.
  Value& member(Value& table, size_t i) {
    auto* entries = table.as<Value::Table>();
    if (!entries) fail(table.origin + " gives a value to " + parts_[i - 1] + ", so it has no keys");
    for (auto& entry : *entries) {
      if (entry.key == parts_[i]) return entry.value;
    }
    const bool list = i == 0 && parts_[0] == "tier";
    Value empty = list ? Value{Value::List{}, origin_} : Value{Value::Table{}, origin_};
    return entries->emplace_back(Entry{parts_[i], std::move(empty)}).value;
  }

  // By place or name; the place after the last one is added.
  Value& tier(Value& tiers, const std::string& which) {
    auto* list = tiers.as<Value::List>();
    if (!list) fail("tier is not a list of tables; write [[tier]] once per tier");
    const size_t i = place_of(*list, which);
    if (i == list->size()) list->push_back({Value::Table{}, origin_});
    return (*list)[i];
  }

  size_t place_of(const Value::List& tiers, const std::string& which) const {
    size_t place = 0;
    const auto [end, error] = std::from_chars(which.data(), which.data() + which.size(), place);
    if (error != std::errc() || end != which.data() + which.size()) return named(tiers, which);
    if (place > tiers.size()) {
      fail("there are " + std::to_string(tiers.size()) + " tiers, counted from 0; tier." +
           std::to_string(tiers.size()) + " would be the next");
    }
    return place;
  }

  size_t named(const Value::List& tiers, const std::string& name) const {
    std::vector<std::string> names;
    for (size_t i = 0; i < tiers.size(); ++i) {
      const Value* given = find(tiers[i], "name");
      const auto* text = given ? given->as<std::string>() : nullptr;
      names.push_back(text ? *text : default_tier(i).name);
      if (names.back() == name) return i;
    }
    const std::string there = names.empty() ? "there are none" : "there are " + joined(names);
    fail("no tier is named " + name + "; " + there + did_you_mean(name, names));
  }

  Value& document_;
  std::string origin_;
  std::vector<std::string> parts_;
  Value value_;
};

}  // namespace

void apply_set(Value& document, const std::string& assignment) {
  Override(document, assignment).apply();
}

}  // namespace hybridsync
