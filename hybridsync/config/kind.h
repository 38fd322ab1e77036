// What a key's value may be: how it is read, checked, printed and described.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "hybridsync/config/value.h"

namespace hybridsync {

// What is wrong with a value, with the remedy ("must be at least 1"); empty: nothing.
using Complaint = std::string;

template <class T>
struct Kind {
  std::string description;  // "integer, at least 1", for the reference
  std::function<Complaint(const Value&, T&)>
      convert;                                 // type and form; leaves T alone on a complaint
  std::function<Complaint(const T&)> check;    // range
  std::function<std::string(const T&)> print;  // as TOML that convert reads back
};

Complaint wrong_type(const std::string& expected, const Value& found);

// A real range; NaN and infinity are never inside.
struct Range {
  double low = 0;
  double high = std::numeric_limits<double>::max();
  bool low_open = false;  // low itself is outside
  bool high_open = false;
};

Kind<double> number(Range range);
Kind<double> duration(Range range);          // seconds, or "50 ms"
Kind<double> duration_or_none(Range range);  // 0 is "none"
Kind<double> rate();                         // bits per second, or "100 Mbit/s"
Kind<bool> truth();
Kind<std::string> text(std::string description, std::function<Complaint(const std::string&)> check);
Kind<int> size_or_auto(int most);                            // 0 is "auto"
Kind<double> number_or_auto(Range range, double automatic);  // `automatic` is "auto"
// A number of nodes, "majority" (kQuorumMajority) or "all" (kQuorumAll).
Kind<int> quorum(int most);
Kind<uint64_t> seed();

// A closed choice. `later` are values of the design that are refused as not available in this
// version.
struct Choices {
  std::vector<std::string> names;
  std::vector<std::string> later = {};
};
Complaint choose(const Value& value, const Choices& choices, size_t& index);
Kind<std::string> word(Choices choices);

// The i-th name stands for the i-th value of the enumeration.
template <class E>
Kind<E> choice(Choices choices) {
  auto convert = [choices](const Value& value, E& out) {
    size_t index = 0;
    Complaint complaint = choose(value, choices, index);
    if (complaint.empty()) out = static_cast<E>(index);
    return complaint;
  };
  auto print = [choices](const E& e) { return quoted(choices.names.at(static_cast<size_t>(e))); };
  return {joined(choices.names), convert, [](const E&) { return Complaint(); }, print};
}

// Complaint about an integer outside [least, most].
Complaint outside(int64_t number, int64_t least, int64_t most);
std::string integers(int64_t least);  // "integer, at least 1"

template <class Int>
Kind<Int> integer(int64_t least, int64_t most = std::numeric_limits<Int>::max()) {
  auto convert = [=](const Value& value, Int& out) {
    const auto* number = value.as<int64_t>();
    if (!number) return wrong_type("an integer", value);
    Complaint complaint = outside(*number, least, most);
    if (complaint.empty()) out = static_cast<Int>(*number);
    return complaint;
  };
  auto check = [=](const Int& number) { return outside(number, least, most); };
  return {integers(least), convert, check,
          [](const Int& number) { return std::to_string(number); }};
}

}  // namespace hybridsync
