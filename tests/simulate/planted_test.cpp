// Every rule of the protocol that can be left out is missed: each planted bug is found by random
// walks through the worlds in which the honest code breaks nothing (explorer_test).
#include "hybridsync/decide/planted.h"

#include <gtest/gtest.h>

#include <iomanip>
#include <iostream>

#include "hybridsync/simulate/explorer.h"
#include "worlds.h"

namespace hybridsync {
namespace {

struct Planted {
  Bug bug;
  const char* name;
  WalkOptions (*world)();
};

// clang-format off
constexpr Planted kAll[] = {
    {Bug::no_fence, "no_fence", few_faults},
    {Bug::no_dedup, "no_dedup", few_faults},
    {Bug::no_inbox_dedup, "no_inbox_dedup", few_faults},
    {Bug::no_restore, "no_restore", few_faults},
    {Bug::no_overlap, "no_overlap", removals},
    {Bug::no_confirm, "no_confirm", removals},
    {Bug::by_version, "by_version", few_faults},
    {Bug::by_result_epoch, "by_result_epoch", removals},
    {Bug::close_twice, "close_twice", few_faults},
    {Bug::no_age_limit, "no_age_limit", few_faults},
    {Bug::return_and_take, "return_and_take", few_faults},
    {Bug::keep_returned, "keep_returned", few_faults},
    {Bug::forget_outbox, "forget_outbox", few_faults},
    {Bug::no_incarnation, "no_incarnation", few_faults},
    {Bug::ignore_stable, "ignore_stable", few_faults},
    {Bug::state_keeps_outbox, "state_keeps_outbox", few_faults},
    {Bug::call_forever, "call_forever", silent_node},
    {Bug::no_gap_check, "no_gap_check", few_faults},
    {Bug::learner_votes, "learner_votes", few_faults},
    {Bug::unbounded_log, "unbounded_log", few_faults},
    {Bug::blank_joins, "blank_joins", few_faults},
    {Bug::stable_at_once, "stable_at_once", few_faults},
    {Bug::state_without_past, "state_without_past", few_faults},
    {Bug::lose_returned, "lose_returned", few_faults},
};
// clang-format on

class PlantedBug : public testing::TestWithParam<Planted> {
 protected:
  ~PlantedBug() override { planted_bug = Bug::none; }
};

TEST_P(PlantedBug, IsFound) {
  planted_bug = GetParam().bug;
  const WalkResult r = walk(GetParam().world());
  ASSERT_TRUE(r.found) << "in " << r.walks << " walks";
  const Counterexample& c = *r.found;
  std::cout << std::left << std::setw(20) << GetParam().name << std::setw(18)
            << name(c.violation.rule) << " walk " << std::setw(6) << c.seed << c.depth
            << " events, shortened to " << c.trace.size() << ": "
            << c.violation.what.substr(0, c.violation.what.find('\n')) << "\n";
  EXPECT_FALSE(c.trace.empty());
}

INSTANTIATE_TEST_SUITE_P(All, PlantedBug, testing::ValuesIn(kAll),
                         [](const auto& info) { return std::string(info.param.name); });

// A bug that the table does not name would be looked for by nobody.
TEST(PlantedBugs, AreAllLookedFor) {
  const auto last = static_cast<size_t>(Bug::lose_returned);
  ASSERT_EQ(std::size(kAll), last);
  for (size_t i = 0; i < last; ++i) EXPECT_EQ(static_cast<size_t>(kAll[i].bug), i + 1);
}

}  // namespace
}  // namespace hybridsync
