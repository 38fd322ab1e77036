#include "hybridsync/torch/run_log.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <limits>

#include "hybridsync/config/load.h"
#include "hybridsync/observe/run_data.h"

namespace hybridsync {
namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &parts);
  return text.data();
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

// Terminal width and redrawing only where `out` is the standard output.
Progress::Options progress_options(std::ostream& out, const Config& config) {
  Progress::Options options;
  if (&out == &std::cout) options = progress_options_for(STDOUT_FILENO);
  if (config.outer_tier().strategy == Strategy::delayed) {
    options.samples =
        config.train.steps * config.train.micro_batch * config.accumulate.steps * config.ranks();
  } else {
    options.steps = config.train.steps;
  }
  return options;
}

}  // namespace

std::string configuration_name(const Config& config) {
  return std::filesystem::path(config.source).stem().string();
}

std::string run_folder(const Config& config, const Environment& environment) {
  if (!environment.run_folder.empty()) return environment.run_folder;
  std::string name = config.record.name;
  if (name.empty()) {
    name = configuration_name(config) + "-" +
           (environment.run_id.empty() ? local_time() : environment.run_id);
  }
  return (std::filesystem::path(config.record.folder) / name).string();
}

RunLog::RunLog(const Config& config, const Environment& environment, std::ostream& out)
    : config_(config), environment_(environment), folder_(run_folder(config, environment)) {
  if (environment.local_rank != 0) return;
  Recorder::Options options{folder_, FolderUse::fresh, {}};
  if (environment.world_size > 1 || !environment.run_folder.empty()) options.use = FolderUse::join;
  options.on_error = [this, &out](const std::string& error) {
    if (progress_) progress_->note(error);
    if (!progress_) out << error << std::endl;
  };
  recorder_ = std::make_unique<Recorder>(std::move(options));
  if (environment.rank != 0) return;
  progress_ = std::make_unique<Progress>(out, progress_options(out, config));
}

RunLog::~RunLog() = default;

void RunLog::begin(const Json& machine) {
  if (!leads()) return;
  Json environment{{"run_id", environment_.run_id},
                   {"host", host_name()},
                   {"ranks", config_.ranks()},
                   {"nodes", config_.nodes()},
                   {"ranks_per_node", config_.ranks_per_node()}};
  environment.update(machine);
  recorder_->write_config(to_toml(config_));
  recorder_->write_environment(environment);
}

void RunLog::step(const StepRecord& record) {
  const std::lock_guard lock(mutex_);
  step_ = record.step;
  samples_ = record.samples;
  seconds_ = record.seconds;
  if (recorder_) recorder_->step(record);
  if (progress_) progress_->step(record, now_seconds());
}

void RunLog::waiting(const std::string& sentence) {
  const std::lock_guard lock(mutex_);
  if (progress_) progress_->waiting(sentence, now_seconds());
}

void RunLog::event(const std::string& kind, const std::string& sentence) {
  const std::lock_guard lock(mutex_);
  if (recorder_) recorder_->event({kind, sentence, environment_.node, step_, seconds_});
}

void RunLog::evaluation(EvaluationRecord record) {
  const std::lock_guard lock(mutex_);
  record.seconds = seconds_;
  if (leads()) recorder_->evaluation(record);
}

RunSummary RunLog::finish(const EvaluationRecord& last, int64_t interval, int64_t rounds) {
  const std::lock_guard lock(mutex_);
  RunSummary summary;
  if (leads()) {
    progress_->finish();
    summary = read_run(folder_).summary;
  }
  summary.name = configuration_name(config_);
  summary.seed = config_.train.seed;
  summary.steps = step_;
  summary.samples = samples_;
  summary.seconds = seconds_;
  summary.final_loss = last.loss;
  summary.final_accuracy = last.accuracy;
  summary.k_final = interval;
  summary.rounds = rounds;
  summary.folder = folder_;
  if (leads()) recorder_->summary(summary);
  return summary;
}

}  // namespace hybridsync
