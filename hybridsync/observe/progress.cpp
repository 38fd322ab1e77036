#include "hybridsync/observe/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "hybridsync/observe/units.h"

namespace hybridsync {

namespace {

constexpr int kSmallestBar = 8, kLargestBar = 30;
constexpr double kRateSeconds = 5;  // over which samples/s is averaged

struct Part {
  std::string text;
  int weight;  // the smallest goes first
};

// Of the run, from 0 to 1; NaN: not known.
double share_done(const ProgressState& s) {
  const auto share = [](int64_t part, int64_t whole) {
    return std::clamp(static_cast<double>(part) / static_cast<double>(whole), 0., 1.);
  };
  if (s.samples_in_all > 0) return share(s.samples, s.samples_in_all);
  return s.steps > 0 ? share(s.step, s.steps) : std::numeric_limits<double>::quiet_NaN();
}

std::string steps_of(const ProgressState& s) {
  const std::string step = std::to_string(s.step);
  if (s.samples_in_all > 0) return percent(share_done(s), 0) + "  step " + step;
  return s.steps > 0 ? step + "/" + std::to_string(s.steps) : "step " + step;
}

std::vector<Part> parts_of(const ProgressState& s) {
  std::vector<Part> parts{{steps_of(s), 9}};
  if (!s.waiting.empty()) {
    parts.push_back({s.waiting, 8});
    return parts;
  }
  if (std::isfinite(s.samples_per_second)) {
    parts.push_back({human_count(s.samples_per_second) + " samples/s", 4});
  }
  if (std::isfinite(s.loss)) parts.push_back({"loss " + fixed(s.loss, 4), 7});
  parts.push_back({"K " + std::to_string(s.interval), 2});
  parts.push_back({human_bytes(static_cast<double>(s.bytes_slow)) + " slow", 3});
  if (std::isfinite(s.seconds_left)) parts.push_back({human_seconds(s.seconds_left) + " left", 5});
  return parts;
}

std::string joined(const std::vector<Part>& parts) {
  std::string text;
  for (const Part& part : parts) text += (text.empty() ? "" : "  ") + part.text;
  return text;
}

int columns_of(const std::string& text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// The first `width` columns: never half a character.
std::string cut(const std::string& text, int width) {
  int columns = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((text[i] & 0xC0) != 0x80 && ++columns > width) return text.substr(0, i);
  }
  return text;
}

std::string bar(const ProgressState& s, int room) {
  const int cells = std::min(room - 2, kLargestBar);
  const int full = static_cast<int>(share_done(s) * cells);
  std::string text(full, '=');
  if (full < cells) text += '>';
  text.resize(cells, ' ');
  return "[" + text + "]";
}

}  // namespace

std::string line(const ProgressState& state, int width) {
  std::vector<Part> parts = parts_of(state);
  const auto lighter = [](const Part& a, const Part& b) { return a.weight < b.weight; };
  while (parts.size() > 2 && columns_of(joined(parts)) > width) {
    parts.erase(std::min_element(parts.begin(), parts.end(), lighter));
  }
  const std::string text = joined(parts);
  const int room = width - columns_of(text) - 1;
  if (!std::isfinite(share_done(state)) || room < kSmallestBar + 2)
    return cut(text, std::max(width, 0));
  return bar(state, room) + " " + text;
}

std::string plain_line(const ProgressState& state) {
  return human_seconds(state.seconds) + "  " + joined(parts_of(state));
}

Progress::Progress(std::ostream& out, Options options) : out_(out), options_(options) {
  state_.steps = options_.steps;
  state_.samples_in_all = options_.samples;
}

void Progress::step(const StepRecord& record, double now) {
  const double seconds = record.seconds - last_seconds_;
  if (seconds > 0) {
    const double rate = static_cast<double>(record.samples - last_samples_) / seconds;
    const double keep =
        std::isfinite(state_.samples_per_second) ? std::exp(-seconds / kRateSeconds) : 0;
    state_.samples_per_second =
        keep > 0 ? keep * state_.samples_per_second + (1 - keep) * rate : rate;
    last_samples_ = record.samples;
    last_seconds_ = record.seconds;
  }
  state_.step = record.step;
  state_.samples = record.samples;
  state_.seconds = record.seconds;
  state_.loss = record.loss;
  state_.interval = record.interval;
  state_.bytes_slow += record.bytes_sent_slow;
  const double done = share_done(state_);
  if (done > 0) state_.seconds_left = record.seconds * (1 - done) / done;
  state_.waiting.clear();
  draw(now);
}

void Progress::waiting(const std::string& sentence, double now) {
  state_.waiting = sentence;
  draw(now);
}

void Progress::note(const std::string& text) {
  if (drawn_) out_ << "\r\x1b[K";
  out_ << text << '\n';
  if (drawn_) put();
  out_.flush();
}

void Progress::finish() {
  if (state_.step == 0) return;
  hidden_ = hidden_ || !state_.waiting.empty();
  state_.waiting.clear();
  state_.seconds_left = 0;
  if (options_.terminal || hidden_) put();
  if (options_.terminal) out_ << '\n';
  drawn_ = false;
  out_.flush();
}

void Progress::draw(double now) {
  const double pause = options_.terminal ? options_.redraw_seconds : options_.plain_seconds;
  hidden_ = true;
  if (now - last_draw_ < pause) return;
  last_draw_ = now;
  put();
  out_.flush();
}

void Progress::put() {
  hidden_ = false;
  if (!options_.terminal) {
    out_ << plain_line(state_) << '\n';
    return;
  }
  const int width =
      options_.descriptor < 0 ? options_.width : progress_options_for(options_.descriptor).width;
  // The last column stays free: some terminals wrap as soon as it is filled.
  out_ << '\r' << line(state_, width - 1) << "\x1b[K";
  drawn_ = true;
}

Progress::Options progress_options_for(int descriptor) {
  Progress::Options options;
  options.terminal = ::isatty(descriptor) == 1;
  options.descriptor = descriptor;
  winsize size{};
  if (options.terminal && ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    options.width = size.ws_col;
  }
  return options;
}

}  // namespace hybridsync
