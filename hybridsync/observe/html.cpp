#include "hybridsync/observe/html.h"

#include <cassert>

namespace hybridsync {

std::string escaped(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      case '\0':
        safe += "\xEF\xBF\xBD";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string script_json(const Json& json) {
  std::string safe;
  for (char c : dump(json)) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string filled(std::string_view page, const std::map<std::string_view, std::string>& values) {
  std::string text;
  size_t at = 0;
  for (size_t open; (open = page.find("{{", at)) != std::string_view::npos;) {
    const size_t close = page.find("}}", open);
    assert(close != std::string_view::npos);
    const auto value = values.find(page.substr(open + 2, close - open - 2));
    assert(value != values.end());
    text.append(page.substr(at, open - at)).append(value->second);
    at = close + 2;
  }
  return text.append(page.substr(at));
}

}  // namespace hybridsync
