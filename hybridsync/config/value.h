// A value as the user wrote it, with the place where it stands; free of any TOML library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hybridsync {

struct Entry;

struct Value {
  using List = std::vector<Value>;
  using Table = std::vector<Entry>;  // in the order of the text
  struct Moment {};                  // a date or a time; no key takes one

  std::variant<std::string, int64_t, double, bool, List, Table, Moment> data;
  std::string origin;  // "hybrid.toml:12" or "--set tier.1.every=abc", for messages

  template <class T>
  const T* as() const {
    return std::get_if<T>(&data);
  }
  template <class T>
  T* as() {
    return std::get_if<T>(&data);
  }
};

struct Entry {
  std::string key;
  Value value;
};

// The entry's value, or nullptr; `table` may be any value.
const Value* find(const Value& table, std::string_view key);

// "an integer", "a string", "a table", ...
std::string type_name(const Value& value);

// As TOML, on one line, shortened when long; for messages.
std::string to_text(const Value& value);

// A string and a number as TOML; the number reads back as the same bits.
std::string quoted(std::string_view text);
std::string number_text(double number);

// "a, b, c"
std::string joined(const std::vector<std::string>& words);

}  // namespace hybridsync
