// The invariants see what is wrong, one by one.
#include "hybridsync/simulate/invariants.h"

#include <gtest/gtest.h>

#include <vector>

#include "hybridsync/simulate/place.h"

namespace hybridsync {
namespace {

// Two nodes that have both contributed to the first round, which node 0 owns.
class Invariants : public testing::Test {
 protected:
  Invariants() {
    policy_.staleness = 1;
    const Schedule schedule{Strategy::delayed, 0, 1};
    for (int node : {0, 1}) {
      Resident place{Seat(0, {node, 0}, policy_, schedule), {}, {}, chronicle_.beginning()};
      step(place).begin({1, {{0, 0}, {1, 0}}, {0}});
      step(place).contribute();
      places_.push_back(std::move(place));
    }
  }

  PlaceStep step(Resident& place) { return {place, chronicle_, policy_}; }

  // Node 1's contribution arrives, and the result at node 1.
  void close() {
    PlaceStep owner = step(places_[0]);
    owner.on({{1, 0}, 1, 0, places_[1].seat.member().outbox().front()});
    for (const Send& send : owner.sent()) {
      PlaceStep member = step(places_[1]);
      member.on(send.message);
      EXPECT_FALSE(member.wrong());
    }
  }

  std::optional<Rule> broken(const Fact& fact) const {
    const Finding found = check_one(fact, policy_, 2);
    return found ? std::optional(found->rule) : std::nullopt;
  }
  std::optional<Rule> broken_between() const {
    const Finding found = check_pair(places_[0].fact(), places_[1].fact());
    return found ? std::optional(found->rule) : std::nullopt;
  }

  Policy policy_;
  Chronicle chronicle_;
  std::vector<Resident> places_;
};

TEST_F(Invariants, HoldBeforeAndAfterARound) {
  EXPECT_EQ(broken(places_[0].fact()), std::nullopt);
  close();
  EXPECT_EQ(places_[1].past->version, 1);
  for (const Resident& p : places_) EXPECT_EQ(broken(p.fact()), std::nullopt);
  EXPECT_EQ(broken_between(), std::nullopt);
}

TEST_F(Invariants, AContributionThatIsNowhereOrTwice) {
  Books books = places_[0].books;
  Fact fact = places_[0].fact();
  fact.books = &books;
  books.made = 2;
  EXPECT_EQ(broken(fact), Rule::exactly_once);
  books = places_[0].books;
  books.returned = {1};
  EXPECT_EQ(broken(fact), Rule::exactly_once);
  close();
  Fact after = places_[0].fact();
  after.books = &books;
  const Finding found = check_exactly_once(after);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->revived);
}

TEST_F(Invariants, AnAccountThatDoesNotBalance) {
  Books books = places_[0].books;
  Fact fact = places_[0].fact();
  fact.books = &books;
  ++books.learned;
  EXPECT_EQ(broken(fact), Rule::account);
  books = places_[0].books;
  ++fact.progress;
  EXPECT_EQ(broken(fact), Rule::account);
}

TEST_F(Invariants, ALineageThatIsNotWhatWasApplied) {
  const Past* before = places_[0].past;
  close();
  Fact fact = places_[0].fact();
  fact.past = before;
  EXPECT_EQ(broken(fact), Rule::one_lineage);
}

TEST_F(Invariants, TwoResultsOfOneVersion) {
  close();
  Result other;
  other.version = 1;
  other.epoch = 1;
  other.roster = {{1, 0, 1, 1, 0, 1, 5}};
  places_[1].past = chronicle_.extend(chronicle_.beginning(), other);
  EXPECT_EQ(broken_between(), Rule::one_lineage);
}

TEST_F(Invariants, DifferentAnchorsOfOneVersion) {
  (void)places_[1].seat.set_anchor(99, 0);
  EXPECT_EQ(broken_between(), Rule::identical_anchors);
}

TEST_F(Invariants, AResultThatHoldsAContributionAgain) {
  close();
  Result again;
  again.version = 2;
  again.chain = places_[0].past->chain;
  again.roster = {{1, 0, 1, 1, 0, 1, 5}};
  const Past* second = chronicle_.extend(places_[0].past, again);
  EXPECT_EQ(check_result(*second, *places_[0].past)->rule, Rule::exactly_once);
  EXPECT_EQ(check_result(*second, *chronicle_.beginning())->rule, Rule::one_lineage);
}

TEST_F(Invariants, OldWork) {
  Contribution old;
  old.base = 3;
  EXPECT_FALSE(check_close({5, Mode::delta, {old}, {}, ""}, 1));
  EXPECT_EQ(check_close({6, Mode::delta, {old}, {}, ""}, 1)->rule, Rule::bounded_age);
  EXPECT_EQ(check_close({5, Mode::gradient, {old}, {}, ""}, 1)->rule, Rule::bounded_age);
}

TEST_F(Invariants, AQueueThatIsTooLong) {
  Policy narrow = policy_;
  narrow.staleness = -1;
  const Finding found = check_bounds(places_[0].fact(), narrow, 2);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rule, Rule::bounds);
}

}  // namespace
}  // namespace hybridsync
