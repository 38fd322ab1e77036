// Rules left out on purpose: whole runs with the production's shell find them too.
#include <gtest/gtest.h>

#include <iostream>

#include "hybridsync/decide/planted.h"
#include "hybridsync/simulate/simulator.h"

namespace hybridsync {
namespace {

struct Planted {
  Bug bug;
  const char* name;
};

class PlantedRun : public testing::TestWithParam<Planted> {};

TEST_P(PlantedRun, IsFound) {
  planted_bug = GetParam().bug;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const SimulatedRun run = simulate(random_scenario(seed), false);
    if (!run.breach) continue;
    planted_bug = Bug::none;
    std::cout << GetParam().name << ": " << name(run.breach->rule) << ", seed " << seed
              << ", after " << run.tally.events << " events: " << run.breach->text.substr(0, 120)
              << "\n";
    const SimulatedRun honest = simulate(random_scenario(seed), false);
    EXPECT_FALSE(honest.breach) << "also without the bug: " << honest.breach->text;
    return;
  }
  planted_bug = Bug::none;
  ADD_FAILURE() << GetParam().name << " is not found";
}

std::vector<Planted> planted_bugs() {
  std::vector<Planted> all{
      {Bug::no_dedup, "no_dedup"},           {Bug::no_age_limit, "no_age_limit"},
      {Bug::keep_returned, "keep_returned"}, {Bug::unbounded_log, "unbounded_log"},
      {Bug::no_gap_check, "no_gap_check"},   {Bug::ignore_stable, "ignore_stable"},
      {Bug::forget_outbox, "forget_outbox"}, {Bug::call_forever, "call_forever"}};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  all.resize(4);  // those that are found soon
#endif
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, PlantedRun, testing::ValuesIn(planted_bugs()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hybridsync
