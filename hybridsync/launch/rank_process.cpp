#include "hybridsync/launch/rank_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "hybridsync/config/error.h"

namespace hybridsync {
namespace {

std::vector<char*> pointers_to(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Between fork and exec in a process that may have threads: only calls that are safe in a signal
// handler.
[[noreturn]] void become(const RankStart& start, char** argv, char** environment, pid_t parent,
                         int error_fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
  setpgid(0, 0);
  signal(SIGTTOU, SIG_IGN);  // outside the terminal's foreground group, and may write all the same
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, 0);
  dup2(start.stdout_fd, 1);
  dup2(start.stderr_fd, 2);
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &start.mask, nullptr);
  execvpe(argv[0], argv, environment);
  const int error = errno;
  [[maybe_unused]] ssize_t n = write(error_fd, &error, sizeof error);
  _exit(127);
}

// The child's errno of a failed exec; 0 once exec has closed the pipe.
int exec_error(int fd) {
  int error = 0;
  ssize_t n;
  do n = read(fd, &error, sizeof error);
  while (n < 0 && errno == EINTR);
  return n == sizeof error ? error : 0;
}

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

RankProcess::RankProcess(const RankStart& start) {
  std::vector<char*> argv = pointers_to(start.argv);
  std::vector<char*> environment = pointers_to(start.environment);
  int error_pipe[2];
  if (pipe2(error_pipe, O_CLOEXEC) != 0) fail("pipe2");
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) become(start, argv.data(), environment.data(), parent, error_pipe[1]);
  const int fork_error = errno;
  if (pid_ > 0) setpgid(pid_, pid_);  // whoever comes first
  close(error_pipe[1]);
  const int error = pid_ < 0 ? fork_error : exec_error(error_pipe[0]);
  close(error_pipe[0]);
  if (error != 0) {
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
    throw ConfigError("cannot start '" + start.argv[0] + "': " + std::strerror(error));
  }
  pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  if (pidfd_ < 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    fail("pidfd_open");
  }
}

RankProcess::RankProcess(RankProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::exchange(other.pidfd_, -1)),
      status_(other.status_) {}

RankProcess::~RankProcess() {
  if (pid_ < 0) return;
  send(SIGKILL);
  waitpid(pid_, nullptr, 0);
  close(pidfd_);
}

void RankProcess::send(int signal) const {
  if (pid_ > 0) kill(-pid_, signal);
}

std::optional<int> RankProcess::reap() {
  if (status_) return status_;
  siginfo_t info{};
  // Left as a zombie, it keeps its number from being given to a stranger's group.
  if (waitid(P_PID, pid_, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != pid_)
    return std::nullopt;
  status_ =
      info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0) : W_EXITCODE(0, info.si_status);
  return status_;
}

}  // namespace hybridsync
