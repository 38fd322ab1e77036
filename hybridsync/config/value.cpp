#include "hybridsync/config/value.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace hybridsync {
namespace {

constexpr size_t kShown = 60;  // a longer value is shortened in a message

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

std::string full_text(const Value& value) {
  return std::visit(Overloaded{
                        [](const std::string& text) { return quoted(text); },
                        [](int64_t number) { return std::to_string(number); },
                        [](double number) { return number_text(number); },
                        [](bool flag) { return std::string(flag ? "true" : "false"); },
                        [](const Value::List&) { return std::string("[...]"); },
                        [](const Value::Table&) { return std::string("{...}"); },
                        [](Value::Moment) { return std::string("(a date or time)"); },
                    },
                    value.data);
}

std::string escaped(char c) {
  if (c == '"' || c == '\\') return {'\\', c};
  const auto code = static_cast<unsigned char>(c);
  if (code >= 0x20 && code != 0x7f) return {c};
  char buffer[8];
  std::snprintf(buffer, sizeof buffer, "\\u%04X", code);
  return buffer;
}

}  // namespace

const Value* find(const Value& table, std::string_view key) {
  const auto* entries = table.as<Value::Table>();
  if (!entries) return nullptr;
  for (const auto& entry : *entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

std::string type_name(const Value& value) {
  constexpr const char* kNames[] = {"a string", "an integer", "a number",      "a truth value",
                                    "a list",   "a table",    "a date or time"};
  return kNames[value.data.index()];
}

std::string to_text(const Value& value) {
  std::string text = full_text(value);
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return text;
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text) result += escaped(c);
  return result + "\"";
}

std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string joined(const std::vector<std::string>& words) {
  std::string result;
  for (const auto& word : words) result += (result.empty() ? "" : ", ") + word;
  return result;
}

}  // namespace hybridsync
