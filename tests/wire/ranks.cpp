// Threads with their results in a vector, or forked processes with theirs in a pipe.
#include "tests/wire/ranks.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <thread>

namespace hybridsync {
namespace {

std::string guarded(const RankBody& body, int rank) {
  try {
    return body(rank);
  } catch (const std::exception& error) {
    return std::string("threw: ") + error.what();
  }
}

struct Child {
  pid_t pid;
  int results;
};

Child start(const RankBody& body, int rank) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("pipe");
  const pid_t pid = ::fork();
  if (pid == 0) {
    const std::string result = guarded(body, rank);
    const bool written = ::write(ends[1], result.data(), result.size()) >= 0;
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  return {pid, ends[0]};
}

std::string finish(const Child& child) {
  std::string result;
  char buffer[4096];
  for (ssize_t n; (n = ::read(child.results, buffer, sizeof buffer)) > 0;) result.append(buffer, n);
  ::close(child.results);
  int status = 0;
  ::waitpid(child.pid, &status, 0);
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? result : "exit status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

std::vector<std::string> run_ranks(RanksAs as, int size, const RankBody& body) {
  std::vector<std::string> results(size);
  if (as == RanksAs::threads) {
    std::vector<std::jthread> threads;
    for (int r = 0; r < size; ++r) {
      threads.emplace_back([&, r] { results[r] = guarded(body, r); });
    }
    return threads.clear(), results;
  }
  std::vector<Child> children;
  for (int r = 0; r < size; ++r) children.push_back(start(body, r));
  for (int r = 0; r < size; ++r) results[r] = finish(children[r]);
  return results;
}

bool can_fork() {
#ifdef __SANITIZE_THREAD__
  return false;
#else
  return true;
#endif
}

std::string fresh_run_id() {
  static std::atomic<int> next = 0;
  return "test-" + std::to_string(::getpid()) + "-" + std::to_string(next++);
}

}  // namespace hybridsync
