// The folder of a run, claimed before its ranks start.
#pragma once

#include <string>

namespace hybridsync {

// What to do when the folder is there already: a name that the user chose is refused, one that was
// made from the time gets -2, -3, ... at its end.
enum class IfTaken { refuse, number };

// Creates the folder, so that of several claims at once only one gets it. At its end it removes the
// folder if the run left nothing inside. One thread.
class ClaimedFolder {
 public:
  // Throws ConfigError when the folder is taken or cannot be created.
  ClaimedFolder(const std::string& folder, IfTaken if_taken);
  ~ClaimedFolder();
  ClaimedFolder(const ClaimedFolder&) = delete;
  ClaimedFolder& operator=(const ClaimedFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace hybridsync
