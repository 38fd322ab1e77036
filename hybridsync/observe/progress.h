// One progress bar on a terminal, plain lines elsewhere.
#pragma once

#include <cstdint>
#include <limits>
#include <ostream>
#include <string>

#include "hybridsync/observe/step_record.h"

namespace hybridsync {

struct ProgressState {
  int64_t step = 0;
  int64_t steps = 0;  // in all; 0: not known
  int64_t samples = 0;
  int64_t samples_in_all = 0;  // 0: steps tell how far the run is; with neither there is no bar
  double samples_per_second = std::numeric_limits<double>::quiet_NaN();
  double loss = std::numeric_limits<double>::quiet_NaN();
  int64_t interval = 1;    // K
  int64_t bytes_slow = 0;  // sent between nodes so far
  double seconds = 0;      // since training began
  double seconds_left = std::numeric_limits<double>::quiet_NaN();
  std::string waiting;  // "waiting 4 s for node 1, fragment 5, version 17", or empty
};

// The state in at most `width` columns, without a line break. Where there is little room the bar
// shrinks and then the least important values go; step and loss stay longest.
std::string line(const ProgressState& state, int width);
// The state as one plain line of any length.
std::string plain_line(const ProgressState& state);

// Draws on a stream. `now` is in seconds from any origin and never runs backwards. One thread.
class Progress {
 public:
  struct Options {
    bool terminal = false;        // redraw one line; otherwise whole lines
    int width = 80;               // columns, where the terminal does not say
    int descriptor = -1;          // terminal to ask for its width at every draw; -1: never
    double redraw_seconds = 0.1;  // at least between draws on a terminal
    double plain_seconds = 5;     // at least between lines elsewhere
    int64_t steps = 0;            // in all, where they end the run
    int64_t samples = 0;          // in all, where they do
  };
  Progress(std::ostream& out, Options options);

  // Every step of this process; the bytes of the steps are added up here.
  void step(const StepRecord& record, double now);
  // While something waits; the next step() clears the sentence.
  void waiting(const std::string& sentence, double now);
  // A line that stays, above the bar.
  void note(const std::string& text);
  // Shows the last state, where there is one, and ends the line. Nothing may follow.
  void finish();

  const ProgressState& state() const { return state_; }

 private:
  void draw(double now);
  void put();

  std::ostream& out_;
  Options options_;
  ProgressState state_;
  double last_draw_ = -std::numeric_limits<double>::infinity();
  int64_t last_samples_ = 0;
  double last_seconds_ = 0;
  bool drawn_ = false;   // the terminal's line holds the bar
  bool hidden_ = false;  // the state has changed since it was last put out
};

// Options for a file descriptor: whether it is a terminal, and its width.
Progress::Options progress_options_for(int descriptor);

}  // namespace hybridsync
