#include "tests/observe/sample_run.h"

#include <cmath>
#include <fstream>
#include <random>

#include "hybridsync/observe/recorder.h"
#include "hybridsync/observe/run_data.h"

namespace hybridsync {

namespace {

constexpr int64_t kSamplesPerStep = 512;
constexpr int64_t kFragmentBytes = 420'000;
constexpr double kLinkSeconds = 0.117;  // of one round over the slow link

class Training {
 public:
  Training(const SampleRun& sample, Recorder& recorder)
      : sample_(sample), recorder_(recorder), random_(sample.seed), ledgers_(sample.nodes) {}

  RunSummary run() {
    for (step_ = 1; step_ <= sample_.steps; ++step_) {
      const bool due = step_ % interval() == 0;
      rounds_ += due;
      for (int node = 0; due && node < sample_.nodes; ++node) settle(node);
      double longest = 0;
      for (int node = 0; node < sample_.nodes; ++node) {
        const StepRecord record = step_of(node, due);
        longest = std::max(longest, record.seconds - seconds_);
        recorder_.step(record);
      }
      seconds_ += longest;
      if (step_ % std::max<int64_t>(sample_.steps / 12, 1) == 0) recorder_.evaluation(evaluation());
      if (step_ == warm_up() && sample_.interval > 1) recorder_.event(start_of_rounds());
    }
    return summary();
  }

 private:
  int64_t warm_up() const { return sample_.interval > 1 ? sample_.steps / 10 : 0; }
  int64_t interval() const { return step_ <= warm_up() ? 1 : sample_.interval; }
  double noise(double width) { return std::normal_distribution<double>(0, width)(random_); }
  double progress() const {
    return static_cast<double>(step_) / static_cast<double>(sample_.steps);
  }
  double expected_loss() const {
    const bool hybrid = sample_.interval > 1;
    return (hybrid ? 0.318 : 0.31) + 1.97 * std::exp(-(hybrid ? 8.2 : 9) * progress());
  }

  StepRecord step_of(int node, bool due) {
    StepRecord r;
    r.node = node;
    r.step = step_;
    r.samples = step_ * kSamplesPerStep;
    r.loss = expected_loss() * (1 + noise(0.09));
    r.global_loss = rounds_ > 0 ? expected_loss() : std::nan("");
    r.lr = 0.05;
    r.grad_norm = 0.8 + std::abs(noise(0.2));
    r.interval = interval();
    r.rounds = rounds_;
    r.mode = interval() == 1 ? "every_step" : sample_.staleness > 0 ? "delayed" : "periodic";
    r.contributors = rounds_ > 0 ? sample_.nodes : 0;
    r.ledger = ledgers_[node];
    r.compute_seconds = 0.048 + std::abs(noise(0.003));
    r.reduce_seconds = 0.004;
    r.reduce_wait_seconds = 0.0009;
    r.optimizer_seconds = 0.0014;
    r.exchange_seconds = due ? kLinkSeconds + std::abs(noise(0.01)) : 0;
    r.agree_seconds = 0.0002;
    r.other_seconds = 0.0011;
    r.bytes_fast = 2 * kFragmentBytes;
    r.bytes_sent_slow = due ? kFragmentBytes : 0;
    r.bytes_received_slow = r.bytes_sent_slow;
    r.seconds = seconds_ + r.compute_seconds + r.reduce_wait_seconds + r.optimizer_seconds +
                r.exchange_seconds + r.agree_seconds + r.other_seconds;
    count(r);
    return r;
  }

  // The last node is late every other time and given back every tenth; node 0 owns the rounds.
  void settle(int node) {
    LedgerRecord& ledger = ledgers_[node];
    const bool slow = lags() && node == sample_.nodes - 1;
    ++ledger.contributed;
    if (slow && rounds_ % 10 == 0) {
      ++ledger.returned;
      return;
    }
    const int64_t age = slow && rounds_ % 2 == 1 ? 1 + rounds_ / 2 % sample_.staleness : 0;
    if (ledger.ages.size() <= static_cast<size_t>(age)) ledger.ages.resize(age + 1);
    ++ledger.ages[age];
    ++ledger.applied;
    if (age == 0) return;
    LedgerRecord& owner = ledgers_[0];
    owner.skipped_by_node.resize(sample_.nodes);
    owner.skipped += age;
    owner.skipped_by_node[node] += age;
  }

  bool lags() const { return interval() > 1 && sample_.staleness > 0; }

  void count(const StepRecord& r) {
    sent_slow_ += r.bytes_sent_slow;
    sent_fast_ += r.bytes_fast;
    computed_ += r.compute_seconds / sample_.nodes;
  }

  EvaluationRecord evaluation() {
    last_.step = step_;
    last_.samples = step_ * kSamplesPerStep;
    last_.seconds = seconds_;
    last_.loss = expected_loss() + 0.03 + noise(0.006);
    last_.accuracy = 0.888 - 0.5 * std::exp(-8 * progress()) + noise(0.002);
    return last_;
  }

  EventRecord start_of_rounds() const {
    const std::string every = std::to_string(sample_.interval);
    return {"mode",   "periodic from here on: a round every " + every + " steps",
            0,        step_,
            seconds_, {{"K", sample_.interval}}};
  }

  RunSummary summary() const {
    RunSummary s{
        sample_.name, sample_.seed,         sample_.steps,    sample_.steps * kSamplesPerStep,
        last_.loss,   last_.accuracy,       seconds_,         sent_slow_,
        sent_fast_,   computed_ / seconds_, sample_.interval, rounds_};
    const LedgerRecord ledger = ledger_of(read_run(recorder_.folder()).steps);
    s.contributed = ledger.contributed;
    s.applied = ledger.applied;
    s.returned = ledger.returned;
    s.skipped = ledger.skipped;
    s.ages = ledger.ages;
    s.folder = recorder_.folder();
    return s;
  }

  const SampleRun& sample_;
  Recorder& recorder_;
  std::mt19937_64 random_;
  int64_t step_ = 0, rounds_ = 0, sent_slow_ = 0, sent_fast_ = 0;
  double seconds_ = 0, computed_ = 0;
  EvaluationRecord last_;
  std::vector<LedgerRecord> ledgers_;  // by node
};

std::string config_of(const SampleRun& sample) {
  return "[train]\nmodel = \"cnn\"\ndata = \"fashion-mnist\"\nlr = 0.05\nsteps = " +
         std::to_string(sample.steps) + "\nseed = " + std::to_string(sample.seed) +
         "\n\n[[tier]]\nname = \"node\"\nsize = 2\n\n[[tier]]\nname = \"site\"\nsize = " +
         std::to_string(sample.nodes) + "\nevery = " + std::to_string(sample.interval) +
         "\nemulate = { rate = \"100 Mbit/s\", rtt = \"50 ms\" }  # "
         "</pre><script>alert(1)</script>\n";
}

}  // namespace

std::string write_sample_run(const std::string& folder, const SampleRun& sample) {
  Recorder recorder({folder, FolderUse::fresh, {}});
  recorder.write_config(config_of(sample));
  recorder.write_environment({{"world_size", 2 * sample.nodes}, {"version", "0.1.0"}});
  const RunSummary summary = Training(sample, recorder).run();
  if (sample.finished) {
    recorder.summary(summary);
  } else {
    std::ofstream(folder + "/metrics.jsonl", std::ios::app)
        << "{\"step\":" << sample.steps + 1 << ",\"lo";
  }
  return folder;
}

}  // namespace hybridsync
