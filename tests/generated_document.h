// Documents that a program makes: a test compares the file with what would be made today.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace hybridsync {

// A file of docs/reference.
inline std::string document(const std::string& name) {
  std::ifstream file(HYBRIDSYNC_SOURCE_DIR "/docs/reference/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void expect_generated(const std::string& name, const std::string& text) {
  if (document(name) == text) return;
  const std::string made = testing::TempDir() + name;
  std::ofstream(made) << text;
  FAIL() << "docs/reference/" << name << " is not what the keys say; look at " << made
         << " and copy it there";
}

}  // namespace hybridsync
