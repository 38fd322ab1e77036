// One rank as a child process that cannot outlive this process.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hybridsync {

// What a rank's process starts with.
struct RankStart {
  std::vector<std::string> argv;         // argv[0] is looked up in PATH
  std::vector<std::string> environment;  // all of it, as "NAME=value"
  int stdout_fd = 1;
  int stderr_fd = 2;
  sigset_t mask{};  // signals that it has blocked at its start
};

// Leads a process group of its own, to which what it starts belongs. Owned by the thread that made
// it: the kernel kills the child when that thread ends, in whatever way. The destructor kills what
// is left of the group and reaps the child.
class RankProcess {
 public:
  // Throws ConfigError when the program cannot be run.
  explicit RankProcess(const RankStart& start);
  ~RankProcess();
  RankProcess(RankProcess&& other) noexcept;
  RankProcess& operator=(RankProcess&&) = delete;

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_; }  // readable once the process has ended
  bool running() const { return !status_; }
  void send(int signal) const;  // to its group, also to what is left of that after its end
  // The wait status once the process has ended; does not wait.
  std::optional<int> reap();

 private:
  pid_t pid_ = -1;
  int pidfd_ = -1;
  std::optional<int> status_;
};

}  // namespace hybridsync
