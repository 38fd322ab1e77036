#include "hybridsync/data/text_data.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>

#include "hybridsync/config/error.h"

namespace hybridsync {
namespace {

constexpr const char* kBibleCommand = "bible -f gen1:1-rev22:21 </dev/null 2>/dev/null";
constexpr size_t kBibleBytes = 4'000'000;  // at least; less is an error message or half a text

std::string output_of(const char* command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command, "r"), pclose);
  std::string text;
  if (!pipe) return text;
  std::array<char, 1 << 16> chunk;
  while (const size_t n = std::fread(chunk.data(), 1, chunk.size(), pipe.get())) {
    text.append(chunk.data(), n);
  }
  return text;
}

}  // namespace

int64_t window_count(const std::vector<uint8_t>& tokens, int64_t context) {
  return tokens.empty() ? 0 : (static_cast<int64_t>(tokens.size()) - 1) / context;
}

TextData to_text_data(std::string_view text) {
  std::array<bool, 256> occurs{};
  for (unsigned char c : text) occurs[c] = true;
  TextData data;
  std::array<uint8_t, 256> token{};
  for (int c = 0; c < 256; ++c) {
    token[c] = static_cast<uint8_t>(data.vocabulary.size());
    if (occurs[c]) data.vocabulary.push_back(static_cast<char>(c));
  }
  const size_t train = text.size() - text.size() / 10;
  data.train.reserve(train);
  for (unsigned char c : text.substr(0, train)) data.train.push_back(token[c]);
  for (unsigned char c : text.substr(train)) data.held_out.push_back(token[c]);
  return data;
}

TextData read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw ConfigError("cannot open " + path + ": " + std::strerror(errno));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) throw ConfigError("cannot read " + path + ": " + std::strerror(errno));
  if (text.empty()) throw ConfigError(path + ": is empty");
  return to_text_data(text);
}

TextData read_bible() {
  const std::string text = output_of(kBibleCommand);
  if (text.size() < kBibleBytes) {
    throw ConfigError(
        "train.data = \"bible\" needs the program `bible`: apt-get install bible-kjv "
        "bible-kjv-text");
  }
  return to_text_data(text);
}

}  // namespace hybridsync
