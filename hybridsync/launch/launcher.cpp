#include "hybridsync/launch/launcher.h"

#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "hybridsync/launch/line_relay.h"
#include "hybridsync/launch/rank_process.h"
#include "hybridsync/launch/signal_fd.h"
#include "hybridsync/wire/rendezvous.h"

namespace hybridsync {
namespace {

using Clock = std::chrono::steady_clock;

// A second signal this soon after the first is the same wish, delivered twice (to the process and
// to its group).
constexpr std::chrono::milliseconds kSameWish{500};
constexpr std::string_view kWholeRun = "hybridsync: ";

std::string random_id() {
  uint8_t bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
    throw std::system_error(errno, std::generic_category(), "getrandom");
  std::string id;
  for (uint8_t b : bytes) {
    id += "0123456789abcdef"[b >> 4];
    id += "0123456789abcdef"[b & 15];
  }
  return id;
}

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
    if (n < 0 && errno == EAGAIN) {
      pollfd ready{fd, POLLOUT, 0};
      poll(&ready, 1, 100);
    } else if (n < 0 && errno != EINTR) {
      return;  // nobody reads any more
    }
  }
}

// A line of its own even where rank 0's progress bar stands in the middle of one.
void write_line(int fd, const std::string& line) {
  static const bool bar = isatty(1) && isatty(2);
  write_all(fd, (bar && isatty(fd) ? "\r\033[K" : "") + line + "\n");
}

struct Rank {
  RankProcess process;
  LineRelay err;
  std::optional<LineRelay> out;  // not for rank 0
  bool ended = false;
};

class Launcher {
 public:
  explicit Launcher(const LaunchOptions& options)
      : options_(options), run_id_(random_id()), host_(options.world_size, run_id_) {}

  int run() {
    for (int rank = 0; rank < options_.world_size; ++rank) ranks_.push_back(start(rank));
    while (running() > 0) {
      wait();
      while (auto signal = signals_.next()) on_signal(*signal);
      pump();
      reap();
      if (kill_at_ && Clock::now() >= *kill_at_) send_all(SIGKILL);
    }
    return exit_code_;
  }

 private:
  Rank start(int rank);
  std::vector<std::string> environment(int rank) const;
  LineRelay relay(int rank, int fd);
  bool said_before(std::string_view line);

  int running() const;
  void wait();
  void pump();
  void reap();
  void on_signal(int signal);
  void on_failure(int rank, int status);
  void end_all(int signal);
  void send_all(int signal);

  const LaunchOptions& options_;
  SignalFd signals_;  // before the rendezvous, whose thread must not take the signals
  std::string run_id_;
  RendezvousHost host_;
  std::set<std::string, std::less<>> said_;  // lines for the whole run; bounded by said_before()
  std::vector<Rank> ranks_;
  int exit_code_ = kDone;
  std::optional<Clock::time_point> interrupted_at_;
  std::optional<Clock::time_point> kill_at_;
};

Rank Launcher::start(int rank) {
  LineRelay err = relay(rank, 2);
  std::optional<LineRelay> out;
  if (rank != 0) out.emplace(relay(rank, options_.output_fd));
  RankStart start{options_.argv, environment(rank), out ? out->write_fd() : options_.output_fd,
                  err.write_fd(), signals_.mask_before()};
  RankProcess process(start);
  err.close_write_end();
  if (out) out->close_write_end();
  return Rank{std::move(process), std::move(err), std::move(out)};
}

std::vector<std::string> Launcher::environment(int rank) const {
  const std::string address = host_.address();
  const size_t colon = address.rfind(':');
  const int per_node = options_.ranks_per_node;
  std::vector<std::pair<std::string, std::string>> ours = {
      {"RANK", std::to_string(rank)},
      {"WORLD_SIZE", std::to_string(options_.world_size)},
      {"LOCAL_RANK", std::to_string(rank % per_node)},
      {"LOCAL_WORLD_SIZE", std::to_string(per_node)},
      {"GROUP_RANK", std::to_string(rank / per_node)},
      {"MASTER_ADDR", address.substr(0, colon)},
      {"MASTER_PORT", address.substr(colon + 1)},
      {"HYBRIDSYNC_RUN_ID", run_id_},
      {"HYBRIDSYNC_RUN_FOLDER", options_.run_folder}};
  std::vector<std::string> all;
  std::set<std::string_view> names;
  for (const auto& [name, value] : ours) {
    names.insert(name);
    if (!value.empty()) all.push_back(name + "=" + value);
  }
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string_view entry = *e;
    if (!names.contains(entry.substr(0, entry.find('=')))) all.emplace_back(entry);
  }
  return all;
}

LineRelay Launcher::relay(int rank, int fd) {
  const std::string prefix = rank == 0 ? "" : "[rank " + std::to_string(rank) + "] ";
  return LineRelay([this, prefix, fd](std::string_view line) {
    if (fd == 2 && line.starts_with(kWholeRun) && said_before(line)) return;
    write_line(fd, prefix + std::string(line));
  });
}

bool Launcher::said_before(std::string_view line) {
  if (said_.contains(line)) return true;
  if (said_.size() < 1000) said_.emplace(line);
  return false;
}

int Launcher::running() const {
  int n = 0;
  for (const Rank& r : ranks_) n += !r.ended;
  return n;
}

void Launcher::wait() {
  std::vector<pollfd> fds = {{signals_.fd(), POLLIN, 0}};
  for (const Rank& r : ranks_) {
    if (r.ended) continue;
    fds.push_back({r.process.pidfd(), POLLIN, 0});
    fds.push_back({r.err.read_fd(), POLLIN, 0});
    if (r.out) fds.push_back({r.out->read_fd(), POLLIN, 0});
  }
  int timeout = -1;
  if (kill_at_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*kill_at_ - Clock::now());
    timeout = std::max<int>(10, static_cast<int>(left.count()));
  }
  poll(fds.data(), fds.size(), timeout);
}

void Launcher::pump() {
  for (Rank& r : ranks_) {
    if (r.ended) continue;
    r.err.pump();
    if (r.out) r.out->pump();
  }
}

void Launcher::reap() {
  int failed = -1, status_of_failed = 0;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    Rank& r = ranks_[i];
    if (r.ended) continue;
    const auto status = r.process.reap();
    if (!status) continue;
    r.ended = true;
    r.err.finish();
    if (r.out) r.out->finish();
    // Of two that ended since the last look, the one that was killed is the cause.
    if (*status != 0 && (failed < 0 || (WIFSIGNALED(*status) && !WIFSIGNALED(status_of_failed)))) {
      failed = static_cast<int>(i);
      status_of_failed = *status;
    }
  }
  if (failed >= 0 && exit_code_ == kDone) on_failure(failed, status_of_failed);
}

void Launcher::on_signal(int signal) {
  const auto now = Clock::now();
  if (interrupted_at_) {
    if (now - *interrupted_at_ > kSameWish) send_all(SIGKILL);
    return;
  }
  interrupted_at_ = now;
  if (exit_code_ == kDone) exit_code_ = kInterrupted;
  end_all(signal);
}

void Launcher::on_failure(int rank, int status) {
  const std::string& last = ranks_[rank].err.last_line();
  std::string message = "hybridsync: rank " + std::to_string(rank) + " (node " +
                        std::to_string(rank / options_.ranks_per_node) + ") ";
  if (WIFSIGNALED(status)) {
    exit_code_ = 128 + WTERMSIG(status);
    message += std::string("was killed by signal ") + std::to_string(WTERMSIG(status)) + " (" +
               strsignal(WTERMSIG(status)) + ")";
  } else {
    exit_code_ = WEXITSTATUS(status);
    message += "exited with code " + std::to_string(exit_code_);
  }
  if (!last.empty())
    message += ": " + (last.starts_with(kWholeRun) ? last.substr(kWholeRun.size()) : last);
  write_line(2, message);
  end_all(SIGTERM);
}

void Launcher::end_all(int signal) {
  kill_at_ = Clock::now() + options_.grace;
  send_all(signal);
}

void Launcher::send_all(int signal) {
  for (const Rank& r : ranks_) r.process.send(signal);
}

}  // namespace

int launch(const LaunchOptions& options) { return Launcher(options).run(); }

}  // namespace hybridsync
