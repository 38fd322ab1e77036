#include "hybridsync/launch/suite.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <thread>

#include "hybridsync/config/error.h"
#include "hybridsync/config/value.h"
#include "hybridsync/launch/launcher.h"
#include "hybridsync/launch/rank_process.h"
#include "hybridsync/launch/signal_fd.h"
#include "hybridsync/launch/suite_folder.h"
#include "hybridsync/launch/suite_results.h"
#include "hybridsync/observe/units.h"

namespace hybridsync {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The environment without what would make a run one rank of another.
std::vector<std::string> environment_of_run() {
  static const std::set<std::string, std::less<>> kOfRanks = {
      "RANK",        "WORLD_SIZE",  "LOCAL_RANK",        "LOCAL_WORLD_SIZE",     "GROUP_RANK",
      "MASTER_ADDR", "MASTER_PORT", "HYBRIDSYNC_RUN_ID", "HYBRIDSYNC_RUN_FOLDER"};
  std::vector<std::string> kept;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string_view entry = *e;
    if (!kOfRanks.contains(entry.substr(0, entry.find('=')))) kept.emplace_back(entry);
  }
  return kept;
}

std::string title(const Suite& suite, const PlannedRun& run) {
  const SuitePart& part = suite.parts[run.part];
  std::string text = part.task + " " + part.name + " ";
  if (run.row < 0) return text + "start, seed " + std::to_string(run.seed);
  const SuiteRow& row = part.rows[static_cast<size_t>(run.row)];
  text += row.name;
  if (row.rates.size() > 1) text += ", lr " + rate_text(run.rate);
  return text + ", seed " + std::to_string(run.seed);
}

// Seconds that are left, from what runs of the same task took per sample so far.
class Outlook {
 public:
  void add(const PlannedRun& run, double seconds) {
    Sum& sum = tasks_[run.config.train.model];
    sum.seconds += seconds;
    sum.work += work(run);
    all_.seconds += seconds;
    all_.work += work(run);
  }
  double seconds(const PlannedRun& run) const {
    const auto found = tasks_.find(run.config.train.model);
    const Sum& sum = found == tasks_.end() ? all_ : found->second;
    return sum.work > 0 ? work(run) * sum.seconds / sum.work : 0;
  }

 private:
  struct Sum {
    double seconds = 0, work = 0;
  };
  // Starting, reading the data and evaluating are worth about so many steps.
  static double work(const PlannedRun& run) {
    constexpr double kSteps = 60;
    return double(run.config.ranks()) * (double(run.config.train.steps) + kSteps);
  }
  std::map<std::string, Sum> tasks_;
  Sum all_;
};

class SuiteRunner {
 public:
  SuiteRunner(const Suite& suite, const SuiteOptions& options, std::ostream& out)
      : suite_(suite),
        options_(options),
        out_(out),
        runs_(plan(suite, options.plan)),
        measured_(runs_.size()) {
    for (size_t i = 0; i < runs_.size(); ++i) {
      index_[runs_[i].name] = i;
      measured_[i] = measure(runs_[i].config, run_folder_in(options_.output, runs_[i]));
    }
    select();
  }

  int list();
  int run();

 private:
  struct Active {
    size_t index;
    std::unique_ptr<RankProcess> process;
    Clock::time_point start;
  };

  void select();
  bool start_is(size_t i, bool (*test)(const Measured&)) const;
  std::optional<size_t> next() const;
  void begin(size_t i);
  void wait(SignalFd& signals);
  void on_signal(int signal);
  void reap();
  void ended(const Active& active, int status);
  void say(size_t i, const std::string& what);
  std::string time_left() const;
  std::vector<PartResult> results() const { return part_results(suite_, runs_, measured_); }
  void write_results() const;
  Origin origin() const;

  const Suite& suite_;
  const SuiteOptions& options_;
  std::ostream& out_;
  std::unique_ptr<SuiteFolder> folder_;
  std::vector<PlannedRun> runs_;
  std::vector<Measured> measured_;
  std::map<std::string, size_t> index_;
  std::set<size_t> selected_;  // done ones as well
  std::set<size_t> waiting_;
  std::vector<Active> active_;
  Outlook outlook_;
  size_t said_ = 0;
  sigset_t mask_{};
  std::optional<Clock::time_point> interrupted_at_;
};

void SuiteRunner::select() {
  for (size_t i = 0; i < runs_.size(); ++i) {
    if (runs_[i].row < 0 || fnmatch(options_.only.c_str(), runs_[i].key.c_str(), 0) != 0) continue;
    selected_.insert(i);
    selected_.insert(index_.at(runs_[i].start));
  }
  if (selected_.empty())
    throw ConfigError("--only " + options_.only + ": no run of the suite " + suite_.name +
                      " has such a name; --dry-run lists them");
  for (const size_t i : selected_) {
    // A start run is only wanted for what is still to be done.
    if (!measured_[i].finished()) waiting_.insert(i);
  }
  std::set<std::string> needed;
  for (const size_t i : waiting_) needed.insert(runs_[i].start);
  std::erase_if(waiting_, [&](size_t i) {
    const bool idle = runs_[i].row < 0 && !needed.contains(runs_[i].name);
    if (idle) selected_.erase(i);
    return idle;
  });
  said_ = selected_.size() - waiting_.size();
}

int SuiteRunner::list() {
  for (const size_t i : selected_) {
    const char* state = measured_[i].finished() ? "done   " : "to come";
    out_ << state << "  " << runs_[i].key << "  " << title(suite_, runs_[i]) << "\n";
  }
  out_ << selected_.size() - waiting_.size() << " of " << selected_.size() << " runs are done\n";
  return kDone;
}

bool SuiteRunner::start_is(size_t i, bool (*test)(const Measured&)) const {
  return runs_[i].start.empty() || test(measured_[index_.at(runs_[i].start)]);
}

std::optional<size_t> SuiteRunner::next() const {
  for (const size_t i : waiting_) {
    if (start_is(i, [](const Measured& m) { return m.state != RunState::missing; })) return i;
  }
  return std::nullopt;
}

int SuiteRunner::run() {
  folder_ = std::make_unique<SuiteFolder>(options_.output, suite_);
  // An interrupt may have come between a run's end and its tidying.
  for (const size_t i : selected_)
    if (measured_[i].finished()) tidy_run(options_.output, runs_[i]);
  SignalFd signals;
  mask_ = signals.mask_before();
  while (!active_.empty() || (!waiting_.empty() && !interrupted_at_)) {
    while (!interrupted_at_ && static_cast<int>(active_.size()) < options_.jobs) {
      const auto i = next();
      if (!i) break;
      begin(*i);
    }
    if (!active_.empty()) wait(signals);
    while (const auto signal = signals.next()) on_signal(*signal);
    reap();
  }
  write_results();
  for (const PartResult& part : results()) {
    out_ << "\n"
         << part.task << ", " << part.part << "\n"
         << to_text(part_table(part)) << part_notes(part);
  }
  out_ << "\n" << options_.output << "/results.md" << std::endl;
  return interrupted_at_ ? kInterrupted : kDone;
}

void SuiteRunner::begin(size_t i) {
  waiting_.erase(i);
  if (!start_is(i, [](const Measured& m) { return m.state == RunState::done; })) {
    measured_[i].state = RunState::failed;
    say(i, "failed: its start run did");
    return;
  }
  clear_run(options_.output, runs_[i]);
  TrainCommand command = command_of(options_.output, suite_, runs_[i]);
  command.sets.push_back("record.folder=" + hybridsync::quoted(options_.output + "/runs"));
  command.sets.push_back("record.name=" + hybridsync::quoted(runs_[i].name));
  command.brief = true;
  const std::string log = log_in(options_.output, runs_[i]);
  const int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), log);
  const RankStart start{rank_argv(command), environment_of_run(), fd, fd, mask_};
  active_.push_back({i, std::make_unique<RankProcess>(start), Clock::now()});
  close(fd);
}

void SuiteRunner::wait(SignalFd& signals) {
  std::vector<pollfd> fds = {{signals.fd(), POLLIN, 0}};
  for (const Active& a : active_) fds.push_back({a.process->pidfd(), POLLIN, 0});
  poll(fds.data(), fds.size(), -1);
}

void SuiteRunner::on_signal(int signal) {
  // Sent to the process and to its group, one wish arrives twice.
  constexpr double kSameWish = 0.5;
  if (interrupted_at_ && seconds_since(*interrupted_at_) < kSameWish) return;
  for (const Active& a : active_) a.process->send(interrupted_at_ ? SIGKILL : signal);
  if (!interrupted_at_) interrupted_at_ = Clock::now();
}

void SuiteRunner::reap() {
  for (size_t n = 0; n < active_.size();) {
    const auto status = active_[n].process->reap();
    if (!status) {
      ++n;
      continue;
    }
    const Active done = std::move(active_[n]);
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(n));
    ended(done, *status);
  }
}

void SuiteRunner::ended(const Active& active, int status) {
  const size_t i = active.index;
  const double seconds = seconds_since(active.start);
  measured_[i] = measure(runs_[i].config, run_folder_in(options_.output, runs_[i]));
  if (measured_[i].finished() && status == 0) {
    outlook_.add(runs_[i], seconds);
    tidy_run(options_.output, runs_[i]);
    const std::string diverged = measured_[i].state == RunState::diverged ? "diverged, " : "";
    say(i, diverged + human_seconds(seconds) + time_left());
  } else if (interrupted_at_) {
    return;
  } else {
    measured_[i].state = RunState::failed;
    const std::string how = WIFSIGNALED(status)
                                ? "killed by signal " + std::to_string(WTERMSIG(status))
                                : "exit code " + std::to_string(WEXITSTATUS(status));
    say(i, "failed (" + how + "): " + log_in(options_.output, runs_[i]));
  }
  write_results();
}

void SuiteRunner::say(size_t i, const std::string& what) {
  out_ << "[" << ++said_ << "/" << selected_.size() << "] " << title(suite_, runs_[i]) << " … "
       << what << std::endl;
}

std::string SuiteRunner::time_left() const {
  double seconds = 0;
  for (const size_t i : waiting_) seconds += outlook_.seconds(runs_[i]);
  for (const Active& a : active_)
    seconds += std::max(0.0, outlook_.seconds(runs_[a.index]) - seconds_since(a.start));
  if (waiting_.empty() && active_.empty()) return "";
  const double minutes = seconds / 60 / options_.jobs;
  return ", about " + fixed(std::max(1.0, minutes), 0) + " min left";
}

Origin SuiteRunner::origin() const {
  Origin origin{.command = options_.command, .commit = options_.commit};
  char date[32];
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  std::strftime(date, sizeof date, "%Y-%m-%d %H:%M", localtime_r(&now, &parts));
  origin.date = date;
  for (const Measured& m : measured_) origin.torch = m.torch.empty() ? origin.torch : m.torch;
  return origin;
}

void SuiteRunner::write_results() const {
  const std::vector<PartResult> parts = results();
  Json json = results_json(suite_, origin(), parts);
  json["runs"] = Json::array();
  for (size_t i = 0; i < runs_.size(); ++i) {
    const Measured& m = measured_[i];
    if (m.state == RunState::missing) continue;
    json["runs"].push_back({{"name", runs_[i].name},
                            {"seed", runs_[i].seed},
                            {"state", word_of(m.state)},
                            {"loss", m.loss},
                            {"accuracy", m.accuracy},
                            {"seconds", m.seconds},
                            {"command", typed(command_of(options_.output, suite_, runs_[i]))}});
  }
  folder_->write("results.json", dump(json, 2) + "\n");
  folder_->write("results.md", results_markdown(suite_, origin(), parts));
}

}  // namespace

int run_suite(SuiteOptions options, std::ostream& out) {
  const Suite& suite = find_suite(options.suite);
  if (options.output.empty()) options.output = "runs/suite-" + suite.name;
  if (options.jobs == 0) options.jobs = std::max(2U, std::thread::hardware_concurrency() / 2);
  SuiteRunner runner(suite, options, out);
  return options.dry_run ? runner.list() : runner.run();
}

}  // namespace hybridsync
