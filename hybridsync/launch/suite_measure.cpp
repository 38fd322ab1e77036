#include "hybridsync/launch/suite_measure.h"

#include <cmath>
#include <filesystem>

#include "hybridsync/observe/run_data.h"

namespace hybridsync {
namespace {

int64_t interval_of(const Config& config) {
  const TierConfig tier = config.outer_tier();
  return tier.strategy == Strategy::every_step ? 1 : tier.every;
}

}  // namespace

const char* word_of(RunState state) {
  constexpr const char* kWords[] = {"missing", "done", "diverged", "failed"};
  return kWords[static_cast<size_t>(state)];
}

Measured measure(const Config& config, const std::string& folder) {
  Measured measured;
  if (!std::filesystem::exists(folder + "/summary.json")) return measured;
  const RunData run = read_run(folder);
  if (!run.finished) return measured;
  const RunSummary& summary = run.summary;
  measured.state = std::isfinite(summary.final_loss) ? RunState::done : RunState::diverged;
  measured.loss = summary.final_loss;
  measured.accuracy = summary.final_accuracy;
  measured.seconds = summary.seconds;
  const Json environment = Json::parse(run.environment, nullptr, false);
  if (!environment.is_object()) return measured;
  measured.torch = environment.value("torch", "");
  const double parameters = environment.value("parameters", 0.0);
  measured.whole = whole_bits(run.steps, summary.steps, parameters);
  measured.steady = steady_bits(run.steps, summary.steps, interval_of(config), parameters);
  return measured;
}

}  // namespace hybridsync
