#include "hybridsync/launch/line_relay.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace hybridsync {
namespace {

constexpr size_t kLongestLine = 64 << 10;

void close_and_forget(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

}  // namespace

LineRelay::LineRelay(std::function<void(std::string_view)> show) : show_(std::move(show)) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
  read_fd_ = ends[0];
  write_fd_ = ends[1];
  fcntl(read_fd_, F_SETFL, O_NONBLOCK);
}

LineRelay::~LineRelay() {
  close_and_forget(read_fd_);
  close_and_forget(write_fd_);
}

LineRelay::LineRelay(LineRelay&& other) noexcept
    : show_(std::move(other.show_)),
      read_fd_(std::exchange(other.read_fd_, -1)),
      write_fd_(std::exchange(other.write_fd_, -1)),
      partial_(std::move(other.partial_)),
      last_line_(std::move(other.last_line_)) {}

void LineRelay::close_write_end() { close_and_forget(write_fd_); }

void LineRelay::pump() {
  char buffer[16 << 10];
  while (read_fd_ >= 0) {
    const ssize_t n = read(read_fd_, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return;
    if (n == 0) close_and_forget(read_fd_);
    take({buffer, static_cast<size_t>(n)});
  }
}

void LineRelay::finish() {
  pump();
  close_and_forget(read_fd_);
  if (!partial_.empty()) emit(std::exchange(partial_, {}));
}

void LineRelay::take(std::string_view bytes) {
  for (size_t end; (end = bytes.find('\n')) != std::string_view::npos;
       bytes.remove_prefix(end + 1)) {
    partial_.append(bytes.substr(0, end));
    emit(std::exchange(partial_, {}));
  }
  partial_.append(bytes);
  if (partial_.size() > kLongestLine) emit(std::exchange(partial_, {}));
}

void LineRelay::emit(std::string_view line) {
  if (line.find_first_not_of(" \t\r") != std::string_view::npos) last_line_ = line;
  show_(line);
}

}  // namespace hybridsync
