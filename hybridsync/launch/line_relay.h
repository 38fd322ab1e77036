// The output of a rank, passed on line by line with the rank's name in front.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hybridsync {

// A pipe whose write end goes to a child. Used by one thread.
class LineRelay {
 public:
  // `show` gets every line, without its end.
  explicit LineRelay(std::function<void(std::string_view line)> show);
  ~LineRelay();
  LineRelay(LineRelay&& other) noexcept;
  LineRelay& operator=(LineRelay&&) = delete;

  int read_fd() const { return read_fd_; }  // -1 once the pipe has ended
  int write_fd() const { return write_fd_; }
  void close_write_end();  // in the parent, once the child has it

  // Passes on what is there now, without waiting.
  void pump();
  // The same, and an unfinished last line; then closes, although a grandchild may still hold the
  // pipe.
  void finish();
  // The last line that was not blank.
  const std::string& last_line() const { return last_line_; }

 private:
  void take(std::string_view bytes);
  void emit(std::string_view line);

  std::function<void(std::string_view)> show_;
  int read_fd_ = -1;
  int write_fd_ = -1;
  std::string partial_;
  std::string last_line_;
};

}  // namespace hybridsync
