#include "hybridsync/launch/suite_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "hybridsync/config/error.h"
#include "hybridsync/config/value.h"

namespace hybridsync {
namespace fs = std::filesystem;

SuiteFolder::SuiteFolder(const std::string& path, const Suite& suite) : path_(path) {
  std::error_code error;
  fs::create_directories(path_ + "/runs", error);
  if (error)
    throw ConfigError("cannot create the suite's folder '" + path_ + "': " + error.message());
  lock_ = open((path_ + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0)
    throw ConfigError("cannot write to the suite's folder '" + path_ +
                      "': " + std::strerror(errno));
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    close(lock_);
    throw ConfigError("another process works in '" + path_ +
                      "': wait for it, or choose another folder with --output");
  }
  for (const SuitePart& part : suite.parts) write(config_file(part), part.toml);
}

SuiteFolder::~SuiteFolder() { close(lock_); }

void SuiteFolder::write(const std::string& name, const std::string& text) const {
  const std::string file = path_ + "/" + name, aside = file + ".part";
  std::ofstream stream(aside, std::ios::binary);
  stream << text;
  stream.close();
  std::error_code error;
  if (stream) fs::rename(aside, file, error);
  if (!stream || error) throw std::runtime_error("cannot write " + file);
}

std::string run_folder_in(const std::string& suite, const PlannedRun& run) {
  return suite + "/runs/" + run.name;
}

std::string log_in(const std::string& suite, const PlannedRun& run) {
  return run_folder_in(suite, run) + ".txt";
}

TrainCommand command_of(const std::string& suite, const Suite& plan, const PlannedRun& run) {
  TrainCommand command{suite + "/" + config_file(plan.parts[run.part]), run.sets};
  if (!run.start.empty())
    command.sets.push_back("train.start_from=" + hybridsync::quoted(suite + "/runs/" + run.start));
  return command;
}

void clear_run(const std::string& suite, const PlannedRun& run) {
  fs::remove_all(run_folder_in(suite, run));
  fs::remove(log_in(suite, run));
}

void tidy_run(const std::string& suite, const PlannedRun& run) {
  fs::remove(log_in(suite, run));
  if (run.row < 0) return;
  for (const char* file : {"/model.pt", "/optimizer.pt"})
    fs::remove(run_folder_in(suite, run) + file);
}

}  // namespace hybridsync
