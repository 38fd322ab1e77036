#include "hybridsync/config/kind.h"

#include <algorithm>
#include <cmath>

#include "hybridsync/config/config.h"
#include "hybridsync/config/nearest.h"
#include "hybridsync/config/units.h"

namespace hybridsync {
namespace {

std::string bare(double number) {
  std::string text = number_text(number);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::string words_of(const Range& range) {
  std::string words = (range.low_open ? "more than " : "at least ") + bare(range.low);
  if (range.high < Range{}.high) {
    words += (range.high_open ? " and less than " : " and at most ") + bare(range.high);
  }
  return words;
}

Complaint outside(double number, const Range& range) {
  if (!std::isfinite(number)) return "must be a finite number";
  const bool low = range.low_open ? number <= range.low : number < range.low;
  const bool high = range.high_open ? number >= range.high : number > range.high;
  return low || high ? "must be " + words_of(range) : "";
}

bool read_number(const Value& value, double& out) {
  if (const auto* integer = value.as<int64_t>()) out = static_cast<double>(*integer);
  if (const auto* number = value.as<double>()) out = *number;
  return value.as<int64_t>() || value.as<double>();
}

std::string names_of(const std::vector<Unit>& units) {
  std::vector<std::string> names;
  for (const auto& unit : units) names.push_back(unit.name);
  return joined(names);
}

Kind<double> quantity(const std::string& what, const std::string& example,
                      const std::vector<Unit>& units, Range range) {
  const std::string form = what + " such as \"" + example + "\"";
  auto convert = [=](const Value& value, double& out) -> Complaint {
    if (read_number(value, out)) return "";
    const auto* text = value.as<std::string>();
    if (!text) return wrong_type(form, value);
    const auto parsed = parse_quantity(*text, units);
    if (!parsed) return "expected " + form + "; the units are " + names_of(units);
    out = *parsed;
    return "";
  };
  auto check = [=](const double& number) { return outside(number, range); };
  auto print = [=](const double& number) { return quantity_text(number, units); };
  return {form + ", " + words_of(range), convert, check, print};
}

template <class T>
Complaint nothing(const T&) {
  return "";
}

}  // namespace

Complaint wrong_type(const std::string& expected, const Value& found) {
  return "expected " + expected + ", found " + type_name(found);
}

Complaint outside(int64_t number, int64_t least, int64_t most) {
  if (number < least) return "must be at least " + std::to_string(least);
  if (number > most) return "must be at most " + std::to_string(most);
  return "";
}

std::string integers(int64_t least) { return "integer, at least " + std::to_string(least); }

Kind<double> number(Range range) {
  auto convert = [](const Value& value, double& out) {
    return read_number(value, out) ? Complaint() : wrong_type("a number", value);
  };
  auto check = [=](const double& value) { return outside(value, range); };
  return {"number, " + words_of(range), convert, check, number_text};
}

Kind<double> duration(Range range) {
  return quantity("a duration", "50 ms", duration_units(), range);
}

Kind<double> duration_or_none(Range range) {
  const Kind<double> inner = duration(range);
  auto convert = [=](const Value& value, double& out) -> Complaint {
    const auto* text = value.as<std::string>();
    if (text && *text == "none") return out = 0, Complaint();
    double seconds = 0;
    Complaint complaint = inner.convert(value, seconds);
    if (complaint.empty()) complaint = inner.check(seconds);
    if (complaint.empty()) out = seconds;
    return complaint;
  };
  auto check = [=](const double& seconds) { return seconds == 0 ? "" : inner.check(seconds); };
  auto print = [=](const double& seconds) {
    return seconds == 0 ? quoted("none") : inner.print(seconds);
  };
  return {inner.description + ", or \"none\"", convert, check, print};
}

Kind<double> rate() { return quantity("a rate", "100 Mbit/s", rate_units(), {}); }

Kind<bool> truth() {
  auto convert = [](const Value& value, bool& out) {
    const auto* flag = value.as<bool>();
    if (!flag) return wrong_type("true or false", value);
    out = *flag;
    return Complaint();
  };
  return {"true or false", convert, nothing<bool>,
          [](const bool& b) { return b ? "true" : "false"; }};
}

Kind<std::string> text(std::string description,
                       std::function<Complaint(const std::string&)> check) {
  auto convert = [](const Value& value, std::string& out) {
    const auto* text = value.as<std::string>();
    if (!text) return wrong_type("a string", value);
    out = *text;
    return Complaint();
  };
  return {std::move(description), convert, std::move(check), quoted};
}

Kind<int> size_or_auto(int most) {
  auto convert = [=](const Value& value, int& out) {
    const auto* text = value.as<std::string>();
    if (text && *text == "auto") return out = 0, Complaint();
    const auto* number = value.as<int64_t>();
    if (!number) return wrong_type("an integer or \"auto\"", value);
    Complaint complaint = outside(*number, 1, most);
    if (complaint.empty()) out = static_cast<int>(*number);
    return complaint;
  };
  auto check = [=](const int& size) { return outside(size, 0, most); };
  auto print = [](const int& size) { return size == 0 ? quoted("auto") : std::to_string(size); };
  return {integers(1) + ", or \"auto\"", convert, check, print};
}

Kind<double> number_or_auto(Range range, double automatic) {
  const Kind<double> inner = number(range);
  auto convert = [=](const Value& value, double& out) -> Complaint {
    const auto* text = value.as<std::string>();
    if (text && *text == "auto") return out = automatic, Complaint();
    if (text) return "must be a number or \"auto\"" + did_you_mean(*text, {"auto"});
    double number = 0;  // `automatic` is no number that a user can give
    Complaint complaint = inner.convert(value, number);
    if (complaint.empty()) complaint = inner.check(number);
    if (complaint.empty()) out = number;
    return complaint;
  };
  auto check = [=](const double& x) { return x == automatic ? "" : inner.check(x); };
  auto print = [=](const double& x) { return x == automatic ? quoted("auto") : inner.print(x); };
  return {inner.description + ", or \"auto\"", convert, check, print};
}

Kind<int> quorum(int most) {
  constexpr const char* kForm = "an integer, \"majority\" or \"all\"";
  auto convert = [=](const Value& value, int& out) -> Complaint {
    const auto* text = value.as<std::string>();
    if (text && *text == "majority") return out = kQuorumMajority, Complaint();
    if (text && *text == "all") return out = kQuorumAll, Complaint();
    if (text)
      return "must be majority, all or an integer" + did_you_mean(*text, {"majority", "all"});
    const auto* number = value.as<int64_t>();
    if (!number) return wrong_type(kForm, value);
    Complaint complaint = outside(*number, 1, most);
    if (complaint.empty()) out = static_cast<int>(*number);
    return complaint;
  };
  auto check = [=](const int& nodes) { return nodes == kQuorumAll ? "" : outside(nodes, 0, most); };
  auto print = [](const int& nodes) {
    if (nodes == kQuorumMajority) return quoted("majority");
    return nodes == kQuorumAll ? quoted("all") : std::to_string(nodes);
  };
  return {integers(1) + ", \"majority\" or \"all\"", convert, check, print};
}

// TOML has no larger integers.
Kind<uint64_t> seed() {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  auto kind = integer<uint64_t>(0, kMost);
  kind.check = [](const uint64_t& seed) {
    return seed > static_cast<uint64_t>(kMost) ? "must be at most " + std::to_string(kMost) : "";
  };
  return kind;
}

Complaint choose(const Value& value, const Choices& choices, size_t& index) {
  const auto* name = value.as<std::string>();
  if (!name) return wrong_type("one of " + joined(choices.names), value);
  const auto found = std::find(choices.names.begin(), choices.names.end(), *name);
  if (found != choices.names.end()) {
    index = static_cast<size_t>(found - choices.names.begin());
    return "";
  }
  if (std::count(choices.later.begin(), choices.later.end(), *name)) {
    return "is not available in this version; available: " + joined(choices.names);
  }
  return "must be one of " + joined(choices.names) + did_you_mean(*name, choices.names);
}

Kind<std::string> word(Choices choices) {
  auto convert = [choices](const Value& value, std::string& out) {
    size_t index = 0;
    Complaint complaint = choose(value, choices, index);
    if (complaint.empty()) out = choices.names[index];
    return complaint;
  };
  auto check = [choices](const std::string& name) {
    size_t index = 0;
    return choose({name, ""}, choices, index);
  };
  return {joined(choices.names), convert, check, quoted};
}

}  // namespace hybridsync
