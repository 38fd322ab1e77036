#include "hybridsync/observe/recorder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "hybridsync/config/error.h"

namespace hybridsync {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFiles[] = {"config.toml",       "environment.json", "metrics.jsonl",
                                  "evaluations.jsonl", "events.jsonl",     "summary.json"};

ConfigError unusable(const std::string& what, const std::string& reason) {
  return ConfigError("record: " + what + ": " + reason +
                     "; set record.folder and record.name to a folder that can be written");
}

class File {
 public:
  File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  bool open() const { return fd_ >= 0; }

  // Bytes written; -1 and errno when nothing was.
  ssize_t write(const std::string& text) {
    ssize_t n;
    do {
      n = ::write(fd_, text.data(), text.size());
    } while (n < 0 && errno == EINTR);
    return n;
  }

 private:
  int fd_;
};

// Puts the text in place of the file, or leaves the old one. Returns errno.
int replace_file(const std::string& path, const std::string& text) {
  const std::string draft = path + "." + std::to_string(::getpid()) + ".tmp";
  int error = 0;
  {
    File file(draft, O_WRONLY | O_CREAT | O_TRUNC);
    if (!file.open()) return errno;
    const ssize_t n = file.write(text);
    if (n != static_cast<ssize_t>(text.size())) error = n < 0 ? errno : ENOSPC;
  }
  if (error == 0 && std::rename(draft.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) ::unlink(draft.c_str());
  return error;
}

void prepare_folder(const std::string& folder, FolderUse use) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw unusable("cannot create the folder " + folder, error.message());
  if (use == FolderUse::fresh && !fs::is_empty(folder, error)) {
    throw ConfigError("record: the folder " + folder + " " +
                      (error ? "cannot be read (" + error.message() + ")" : "is not empty") +
                      "; choose another record.name or remove it");
  }
  if (use != FolderUse::replace) return;
  for (const char* name : kFiles) fs::remove(fs::path(folder) / name, error);
}

// A full disk or a read-only folder must show before training starts, not at the first record.
void check_writable(const std::string& folder) {
  const std::string probe = folder + "/.writable." + std::to_string(::getpid());
  const int error = replace_file(probe, std::string(4096, ' '));
  if (error != 0) throw unusable("cannot write to the folder " + folder, std::strerror(error));
  ::unlink(probe.c_str());
}

}  // namespace

class Recorder::Lines {
 public:
  explicit Lines(std::string path)
      : path_(std::move(path)), file_(path_, O_WRONLY | O_CREAT | O_APPEND) {
    if (!file_.open()) throw unusable("cannot open " + path_, std::strerror(errno));
  }
  const std::string& path() const { return path_; }

  // Returns errno. After a torn line the next one starts on a line of its own.
  int append(const std::string& line) {
    const std::string text = (torn_ ? "\n" : "") + line + "\n";
    const ssize_t n = file_.write(text);
    if (n == static_cast<ssize_t>(text.size())) {
      torn_ = false;
      return 0;
    }
    torn_ = torn_ || n > 0;
    return n < 0 ? errno : ENOSPC;
  }

 private:
  std::string path_;
  File file_;
  bool torn_ = false;
};

Recorder::Recorder(Options options) : options_(std::move(options)) {
  prepare_folder(options_.folder, options_.use);
  check_writable(options_.folder);
  metrics_ = std::make_unique<Lines>(path_of("metrics.jsonl"));
  evaluations_ = std::make_unique<Lines>(path_of("evaluations.jsonl"));
  events_ = std::make_unique<Lines>(path_of("events.jsonl"));
}

Recorder::~Recorder() = default;

std::string Recorder::path_of(const char* name) const { return options_.folder + "/" + name; }

void Recorder::write_config(const std::string& toml) {
  const int error = replace_file(path_of("config.toml"), toml);
  if (error != 0) throw unusable("cannot write " + path_of("config.toml"), std::strerror(error));
}

void Recorder::write_environment(const Json& object) {
  const std::string path = path_of("environment.json");
  const int error = replace_file(path, dump(object, 2) + "\n");
  if (error != 0) throw unusable("cannot write " + path, std::strerror(error));
}

void Recorder::step(const StepRecord& record) {
  const double seconds = record.seconds - last_seconds_;
  // A total that was estimated may turn out smaller at the end.
  const auto more = static_cast<double>(std::max<int64_t>(0, record.samples - last_samples_));
  const double rate = seconds > 0 ? more / seconds : std::numeric_limits<double>::quiet_NaN();
  last_samples_ = record.samples;
  last_seconds_ = record.seconds;
  append(*metrics_, to_json(record, rate));
}

void Recorder::evaluation(const EvaluationRecord& record) {
  append(*evaluations_, to_json(record));
}

void Recorder::event(const EventRecord& record) { append(*events_, to_json(record)); }

void Recorder::summary(const RunSummary& summary) {
  const std::string path = path_of("summary.json");
  const int error = replace_file(path, dump(to_json(summary), 2) + "\n");
  if (error != 0) failed(path, error);
}

void Recorder::append(Lines& lines, const Json& line) {
  const int error = lines.append(dump(line));
  if (error != 0) failed(lines.path(), error);
}

void Recorder::failed(const std::string& path, int error) {
  if (errors_++ > 0 || !options_.on_error) return;
  options_.on_error("cannot write " + path + ": " + std::strerror(error) +
                    "; training goes on, this part of the record is lost");
}

}  // namespace hybridsync
