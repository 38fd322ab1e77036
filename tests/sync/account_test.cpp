// The account of a node: whatever happens to its contributions, anchor - parameters = unresolved +
// progress. The test is the comm side of its desk.
#include "hybridsync/sync/account.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "hybridsync/math/arithmetic.h"
#include "hybridsync/math/outer.h"

namespace hybridsync {
namespace {

constexpr int kNode = 1;
const Schedule kPeriodic{Strategy::periodic, 0, 4};
const Schedule kStartThenPeriodic{Strategy::periodic, 1, 4};

template <class T>
constexpr Real real_of() {
  return std::is_same_v<T, float> ? Real::f32 : Real::f64;
}

template <class T>
std::span<const T> numbers(const Body& body) {
  return {reinterpret_cast<const T*>(body.bytes->data()), body.layout.values_bytes / sizeof(T)};
}

template <class T>
std::vector<T> vector_of(const ConstValues& values) {
  const auto all = std::get<std::span<const T>>(values);
  return {all.begin(), all.end()};
}

void keep_all(Values) {}

// One fragment of a node: its training and, in the test's hands, its comm side.
template <class T>
struct Bench {
  Bench(std::vector<T> start, int staleness, Schedule schedule = kPeriodic,
        std::function<void(Values)> round = keep_all, const CodecOptions& codec = {})
      : theta(std::move(start)),
        table{1, 1, {{0, real_of<T>(), 0, static_cast<int64_t>(theta.size())}}},
        desk(table, {0}),
        account(table.fragments[0], kNode, staleness, schedule, desk, std::move(round),
                std::make_shared<Coder>(codec)) {
    if (schedule.mode(0) == Mode::delta) set_anchor();
  }

  void set_anchor() {
    account.set_anchor(values());
    (void)desk.take_work();  // the comm side has it
    anchor = theta;
  }
  ConstValues values() const { return std::span<const T>(theta); }

  // One step, which moves every parameter against this.
  void train(const std::vector<T>& by, double weight = 1) {
    for (size_t i = 0; i < theta.size(); ++i) theta[i] -= by[i];
    account.step({weight, static_cast<int64_t>(weight), 0, 0});
  }
  void train(T by) { train(std::vector<T>(theta.size(), by)); }

  // Offers what there is; what the comm side gets.
  Draft contribute(bool finished = false) {
    account.contribute(values(), finished, nullptr);
    auto work = desk.take_work();
    EXPECT_EQ(work.drafts.size(), 1u);
    return work.drafts.at(0);
  }

  // The anchor moves against `mean`, by a result with these contributions of this node.
  void result(
      const std::vector<Contribution>& own, const std::vector<T>& mean,
      const std::function<void(Result&)>& adjust = [](Result&) {}) {
    Result r;
    r.version = ++version;
    r.mode = r.next_mode = Mode::delta;
    r.next_interval = 4;
    r.weight = 1;
    adjust(r);
    for (size_t i = 0; i < anchor.size(); ++i) anchor[i] -= mean[i];
    desk.tell(0, Moved{r, own, {}, {}}, bytes_of_anchor());
  }
  void give_back(const Contribution& c, ReturnReason reason) { desk.tell(0, GivenBack{c, reason}); }
  // Another lineage, with this anchor.
  void replace(Version to, std::vector<T> by, std::vector<Contribution> own,
               std::vector<std::pair<Contribution, Body>> restored) {
    version = to;
    anchor = std::move(by);
    Lineage lineage;
    lineage.version = to;
    lineage.mode = Mode::delta;
    lineage.interval = 4;
    lineage.finished = true;
    desk.tell(0, Replaced{to, lineage, std::move(own), std::move(restored)}, bytes_of_anchor());
  }

  std::vector<std::byte> bytes_of_anchor() const {
    const auto bytes = std::as_bytes(std::span<const T>(anchor));
    return {bytes.begin(), bytes.end()};
  }

  Account::Change apply() {
    std::vector<T> out(theta.size(), T{-1000});
    const auto change = account.apply(values(), std::span<T>(out));
    if (change.moved) theta = out;
    return change;
  }

  // anchor - parameters - unresolved.
  std::vector<T> rest() const {
    std::vector<T> left = vector_of<T>(account.anchor());
    for (size_t i = 0; i < left.size(); ++i) left[i] -= theta[i];
    account.each_unresolved([&](uint64_t, const Body& body) {
      const auto work = numbers<T>(body);
      for (size_t i = 0; i < work.size(); ++i) left[i] -= work[i];
    });
    return left;
  }

  static ConstValues as_span(const std::vector<T>& all) { return std::span<const T>(all); }

  std::vector<T> theta;
  std::vector<T> anchor;  // of the comm side
  Version version = 0;
  FragmentTable table;
  Desk desk;
  Account account;
};

using F = std::vector<float>;

// --- one by one, in numbers without rounding

TEST(Account, AContributionIsWhatWasLearned) {
  Bench<float> b({10, 20}, 1);
  b.train({1, -2});
  b.train({2, -4});
  const Draft d = b.contribute();
  const auto work = numbers<float>(d.body);
  EXPECT_EQ(F(work.begin(), work.end()), (F{3, -6}));
  EXPECT_EQ(d.contribution.weight, 2);
  EXPECT_EQ(d.contribution.squared_norm, 45);
  EXPECT_EQ(b.rest(), (F{0, 0}));
  b.train(5);
  EXPECT_EQ(b.rest(), (F{5, 5})) << "progress since";
}

TEST(Account, AResultWithoutItLeavesOwnWorkInTheParameters) {
  Bench<float> b({10}, 1);
  b.train(1);
  (void)b.contribute();
  b.train(2);
  b.result({}, {100});
  EXPECT_TRUE(b.apply().moved);
  EXPECT_EQ(b.theta, F{10 - 100 - 1 - 2});
  EXPECT_EQ(b.rest(), F{2});
  EXPECT_EQ(b.account.position().unresolved(), 1);
}

TEST(Account, AResultWithItIsSeenOnceOnly) {
  Bench<float> b({10}, 1);
  b.train(4);
  const Draft d = b.contribute();
  b.train(2);
  b.result({d.contribution}, {3});  // the mean of 4 and of another node's 2
  (void)b.apply();
  EXPECT_EQ(b.theta, F{10 - 3 - 2});
  EXPECT_EQ(b.account.position().unresolved(), 0);
}

TEST(Account, WhatComesBackIsProgressAndMovesNothing) {
  Bench<float> b({10}, 1);
  b.train(4);
  const Draft d = b.contribute();
  b.train(2);
  b.give_back(d.contribution, ReturnReason::too_old);
  EXPECT_FALSE(b.apply().moved);
  EXPECT_EQ(b.theta, F{4});
  EXPECT_EQ(b.rest(), F{6});
  const auto again = numbers<float>(b.contribute().body);
  EXPECT_EQ(F(again.begin(), again.end()), F{6}) << "all of it is offered again";
}

TEST(Account, WhatIsDroppedIsGone) {
  Bench<float> b({10}, 1);
  b.train(4);
  const Draft d = b.contribute();
  b.train(2);
  b.give_back(d.contribution, ReturnReason::dropped);
  const auto change = b.apply();
  EXPECT_TRUE(change.moved);
  EXPECT_EQ(change.dropped_samples, 1);
  EXPECT_EQ(b.theta, F{8});
  EXPECT_EQ(b.rest(), F{2});
}

TEST(Account, AFateIsToldOnce) {
  Bench<float> b({10}, 1);
  b.train(4);
  const Draft d = b.contribute();
  for (int i = 0; i < 2; ++i) b.give_back(d.contribution, ReturnReason::too_old);
  b.result({d.contribution}, {0});
  (void)b.apply();
  EXPECT_EQ(b.theta, F{6});
  EXPECT_EQ(b.account.position().unresolved(), 0);
  EXPECT_EQ(b.account.position().since().weight, 1);
}

TEST(Account, WhatADroppedTailHeldComesBack) {
  Bench<float> b({10}, 1);
  b.train(4);
  const Draft d = b.contribute();
  b.result({d.contribution}, {4});
  (void)b.apply();
  b.train(1);
  b.replace(0, {10}, {}, {{d.contribution, d.body}});
  (void)b.apply();
  EXPECT_EQ(b.theta, F{5});
  EXPECT_EQ(b.rest(), F{5});
  EXPECT_EQ(b.account.position().since().weight, 2);
  EXPECT_EQ(b.account.position().version(), 0);
}

TEST(Account, ALineageThatHoldsItSettlesIt) {
  Bench<float> b({10}, 1);
  b.train(4);
  const Draft d = b.contribute();
  b.train(1);
  b.replace(9, {50}, {d.contribution}, {});
  (void)b.apply();
  EXPECT_EQ(b.theta, F{49});
  EXPECT_EQ(b.account.position().unresolved(), 0);
  EXPECT_EQ(b.account.position().version(), 9);
  EXPECT_EQ(b.account.mode(), Mode::delta);
  EXPECT_TRUE(b.account.finished()) << "as the lineage is";
}

TEST(Account, SeveralNewsAreOneMove) {
  Bench<float> b({10}, 3);
  b.train(4);
  const Draft one = b.contribute();
  b.result({}, {100});
  (void)b.apply();
  b.train(2);
  const Draft two = b.contribute();
  b.train(1);
  b.result({one.contribution}, {4}, [](Result& r) {
    r.samples = 7;
    r.roster = {{0, 0, 1, 1, 0, 1, 3}, {kNode, 0, 1, 1, 1, 1, 4}};
  });
  b.give_back(two.contribution, ReturnReason::late);
  b.result({}, {1000}, [](Result& r) { r.weight = 0, r.samples = 5, r.finished = true; });
  const auto change = b.apply();
  EXPECT_EQ(b.theta, F{10 - 100 - 4 - 1000 - 2 - 1});
  EXPECT_EQ(b.rest(), F{3});
  EXPECT_EQ(change.samples, 12);
  EXPECT_EQ(change.own_samples, 4);
  EXPECT_EQ(change.rounds, 1) << "in the other one everybody abstained";
  EXPECT_EQ(change.age, -1) << "the newest has none of this node";
  EXPECT_EQ(change.newest.version, 3);
  EXPECT_TRUE(b.account.finished());
}

TEST(Account, NumbersThatAreNotFiniteNeverLeave) {
  Bench<float> b({10, 10}, 1);
  b.train({1, std::numeric_limits<float>::quiet_NaN()});
  const Draft d = b.contribute();
  EXPECT_EQ(d.contribution.weight, 0);
  EXPECT_EQ(d.body.layout.values_bytes, 0u);
}

TEST(Account, ParametersThatAreNotFiniteStartAgainFromTheAnchorAndAreCounted) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Bench<float> b({10, 10}, 1);
  b.train({1, 2});
  const Draft good = b.contribute();
  b.result({}, {0, 0});
  (void)b.apply();
  b.train({nan, 1}, 3);
  const Draft bad = b.contribute();
  EXPECT_EQ(bad.contribution.weight, 0);
  EXPECT_EQ(bad.contribution.samples, 3);
  EXPECT_EQ(b.desk.ledger().lost.samples, 3);
  const auto reports = b.desk.reports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].kind, Report::Kind::not_finite);
  b.train({nan, 1}, 5);  // in vain
  // What was finite and comes back is progress again.
  b.give_back(good.contribution, ReturnReason::late);
  EXPECT_TRUE(b.apply().moved);
  EXPECT_EQ(b.theta, (F{9, 8}));
  EXPECT_EQ(b.account.position().since().weight, 1);
  b.result({bad.contribution}, {0, 0});
  EXPECT_TRUE(b.apply().moved);
  EXPECT_EQ(b.theta, (F{9, 8})) << "once only";
  EXPECT_EQ(b.rest(), (F{1, 2}));
}

// --- when

// A last contribution may consist of nothing else, and has no steps then.
TEST(Account, WhatCodesLeftOutComesBackLikeWork) {
  CodecOptions codec;
  codec.kind = CodecKind::int2;
  codec.residual = Residual::buffer;
  F by(64);
  for (size_t i = 0; i < by.size(); ++i) by[i] = static_cast<float>(i) / 4;
  Bench<float> b(F(64, 10), 1, kPeriodic, keep_all, codec);
  b.train(by);
  const Draft coded = b.contribute();
  F sent(64);
  ASSERT_TRUE(Coder(codec).decode(*coded.body.bytes, std::span<float>(sent)));
  b.result({coded.contribution}, sent);
  (void)b.apply();
  const Draft rest = b.contribute(true);
  ASSERT_EQ(rest.contribution.steps, 0);
  ASSERT_GT(rest.contribution.weight, 0);
  b.give_back(rest.contribution, ReturnReason::late);
  (void)b.apply();
  b.result({}, F(64, 0));
  (void)b.apply();
  const auto again = numbers<float>(b.contribute(true).body);
  ASSERT_EQ(again.size(), 64u);
  for (size_t i = 0; i < by.size(); ++i) EXPECT_NEAR(sent[i] + again[i], by[i], 1e-5) << i;
}

TEST(Account, IsCalledOnlyWhereNodesMayLag) {
  for (const int s : {0, 1}) {
    Bench<float> b({10}, s);
    Desk::Status status;
    status.called = true;
    b.desk.set_status(0, status);
    EXPECT_FALSE(b.account.wants_to_contribute()) << "nothing to give";
    EXPECT_TRUE(b.account.should_answer()) << "but it must not wait elsewhere";
    b.train(1);
    EXPECT_EQ(b.account.wants_to_contribute(), s > 0);
  }
}

TEST(Account, NothingIsOfferedInTheMiddleOfAViewChange) {
  Bench<float> b({10}, 1);
  b.train(1);
  Desk::Status status;
  status.ready = false;
  b.desk.set_status(0, status);
  EXPECT_FALSE(b.account.may_contribute());
  b.account.contribute(b.values(), false, nullptr);
  EXPECT_TRUE(b.desk.take_work().drafts.empty());
  EXPECT_EQ(b.rest(), F{1});
}

TEST(Account, KnowsBeforehandThatItWillWait) {
  for (const int s : {0, 1}) {
    Bench<float> b({10}, s);
    for (int i = 0; i < 3; ++i) b.train(1);
    EXPECT_FALSE(b.account.will_wait(0));
    EXPECT_EQ(b.account.will_wait(1), s == 0) << "the contribution due then is the last one open";
    b.train(1);
    (void)b.contribute();
    EXPECT_EQ(b.account.must_wait(), s == 0);
  }
}

// --- gradient mode

TEST(Account, AGradientsResultIsTheMean) {
  Bench<float> b({10}, 3, kStartThenPeriodic);
  Contribution draft;
  draft.weight = 2;
  const F gradient{5};
  b.account.contribute_gradient(draft, Bench<float>::as_span(gradient), nullptr);
  const auto work = b.desk.take_work();
  ASSERT_EQ(work.drafts.size(), 1u);
  EXPECT_FALSE(b.account.may_contribute()) << "s is 0 there";
  Writer writer;
  writer.raw(bytes_of(Bench<float>::as_span({7})));
  Body mean;
  mean.layout.values_bytes = sizeof(float);
  mean.bytes = std::make_shared<const Bytes>(writer.take());
  Result r;
  r.version = 1;
  r.weight = 2;
  r.next_mode = Mode::delta;
  r.next_interval = 4;
  b.desk.tell(0, Moved{r, {work.drafts[0].contribution}, mean, {}});
  F out{0};
  const auto change = b.account.apply(b.values(), std::span<float>(out));
  EXPECT_FALSE(change.moved);
  EXPECT_EQ(out, F{7});
  EXPECT_EQ(b.account.mode(), Mode::delta);
  EXPECT_EQ(b.account.interval(), 4);
  EXPECT_EQ(b.account.position().unresolved(), 0);
  b.set_anchor();
  b.train(1);
  EXPECT_EQ(b.rest(), F{1});
}

TEST(Account, WhenAllAbstainThereIsNoMean) {
  Bench<float> b({10}, 0, kStartThenPeriodic);
  Result r;
  r.version = 1;
  b.desk.tell(0, Moved{r, {}, {}, {}});
  F out{42};
  EXPECT_TRUE(b.account.apply(b.values(), std::span<float>(out)).advanced);
  EXPECT_EQ(out, F{42});
}

// --- narrower parameters

// As bfloat16 keeps them: to nearest even, the upper half of the bits.
float narrow(float x) {
  auto bits = std::bit_cast<uint32_t>(x);
  bits += 0x7fff + ((bits >> 16) & 1);
  return std::bit_cast<float>(bits & 0xffff0000u);
}
void narrow_all(Values v) {
  for (float& x : std::get<std::span<float>>(v)) x = narrow(x);
}

TEST(Account, RoundingOfNarrowParametersIsNotMistakenForLearning) {
  Bench<float> b({1}, 1, kPeriodic, narrow_all);
  b.result({}, {0.001f});  // an anchor that such a parameter cannot hold
  (void)b.apply();
  b.theta = {narrow(b.theta[0])};
  ASSERT_NE(b.theta[0], b.anchor[0]);
  b.train(0);
  const Draft d = b.contribute();
  EXPECT_EQ(numbers<float>(d.body)[0], 0);
  b.train(0);
  b.result({}, {0.25f});
  (void)b.apply();
  EXPECT_EQ(b.theta[0], b.anchor[0]) << "nothing of it is carried on";
}

TEST(Account, WhatNarrowParametersLearnIsTheirMove) {
  Bench<float> b({1}, 1, kPeriodic, narrow_all);
  b.result({}, {0.001f});
  (void)b.apply();
  b.theta = {narrow(b.theta[0])};
  b.train(0.125f);
  EXPECT_EQ(numbers<float>(b.contribute().body)[0], 0.125f);
}

// --- any order of events

// What a node has learned, counted beside the account; in double, but whole numbers stay exact.
template <class T>
class Walk {
 public:
  Walk(uint32_t seed, int staleness, bool whole)
      : random_(seed), whole_(whole), staleness_(staleness), bench_(start(), staleness) {
    book_.resize(kCount);
  }

  // One event, whichever; `tolerance` is for the account's balance.
  void step(double tolerance) {
    const int what = pick(10);
    if (what < 4) train();
    if (what == 4 || what == 5) offer();
    if (what == 6) advance();
    if (what == 7) give_back();
    if (what == 8) replace();
    if (what == 9) apply();
    if (!bench_.account.has_news()) check(tolerance);
  }
  int settled = 0, returned = 0, dropped = 0, restored = 0;

 private:
  static constexpr size_t kCount = 3;

  int pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  T number() {
    if (whole_) return static_cast<T>(pick(17) - 8);
    return static_cast<T>(std::uniform_real_distribution<double>(-1, 1)(random_));
  }
  std::vector<T> some() {
    std::vector<T> all(kCount);
    for (T& x : all) x = number();
    return all;
  }
  std::vector<T> start() { return some(); }

  void train() {
    const std::vector<T> before = bench_.theta;
    const int weight = pick(3);  // 0: a skipped step, which moves nothing
    bench_.train(weight == 0 ? std::vector<T>(kCount) : some(), weight);
    for (size_t i = 0; i < kCount; ++i) book_[i] += double(before[i]) - double(bench_.theta[i]);
  }
  void offer() {
    if (!bench_.account.may_contribute()) return;
    const Draft d = bench_.contribute();
    enter(d.body, -1);
    open_.push_back(d);
  }
  void enter(const Body& body, double sign) {
    const auto work = numbers<T>(body);
    for (size_t i = 0; i < work.size(); ++i) book_[i] += sign * double(work[i]);
  }
  std::optional<Draft> one_of(std::vector<Draft>& drafts) {
    if (drafts.empty()) return std::nullopt;
    const auto at = drafts.begin() + pick(static_cast<int>(drafts.size()));
    const Draft d = *at;
    drafts.erase(at);
    return d;
  }
  // A result with some of what is open.
  void advance() {
    std::vector<Contribution> own;
    for (int n = pick(3); n > 0; --n)
      if (const auto d = one_of(open_)) own.push_back(d->contribution), kept_.push_back(*d);
    settled += static_cast<int>(own.size());
    bench_.result(own, some());
  }
  void give_back() {
    const auto d = one_of(open_);
    if (!d) return;
    const bool drop = pick(3) == 0;
    bench_.give_back(d->contribution, drop ? ReturnReason::dropped : ReturnReason::late);
    drop ? ++dropped : ++returned;
    if (!drop) later_.push_back([this, d] { enter(d->body, 1); });
  }
  // Another lineage, which holds some of what is open and not all that was applied.
  void replace() {
    std::vector<Contribution> own;
    std::vector<std::pair<Contribution, Body>> back;
    if (pick(2))
      if (const auto d = one_of(open_)) own.push_back(d->contribution), kept_.push_back(*d);
    if (pick(2))
      if (const auto d = one_of(kept_)) back.emplace_back(d->contribution, d->body);
    for (const auto& [c, body] : back) later_.push_back([this, body] { enter(body, 1); });
    restored += static_cast<int>(back.size());
    const Version to = std::max<Version>(0, bench_.version + pick(5) - 2);
    bench_.replace(to, some(), own, back);
  }
  void apply() {
    (void)bench_.apply();
    for (const auto& entry : later_) entry();
    later_.clear();
  }
  void check(double tolerance) {
    const std::vector<T> rest = bench_.rest();
    for (size_t i = 0; i < kCount; ++i) ASSERT_NEAR(rest[i], book_[i], tolerance);
    ASSERT_EQ(vector_of<T>(bench_.account.anchor()), bench_.anchor);
    ASSERT_EQ(bench_.account.position().unresolved(), static_cast<int>(open_.size()));
    ASSERT_LE(bench_.account.position().unresolved(), staleness_ + 1);
  }

  std::mt19937 random_;
  bool whole_;
  int staleness_;
  Bench<T> bench_;
  std::vector<double> book_;                  // progress
  std::vector<Draft> open_;                   // fate not told yet
  std::vector<Draft> kept_;                   // applied
  std::vector<std::function<void()>> later_;  // entries for when the news is taken
};

template <class T>
class AnyOrder : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(AnyOrder, Reals);

template <class T>
void walk(bool whole, double tolerance) {
  int settled = 0, returned = 0, dropped = 0, restored = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    Walk<T> w(seed, static_cast<int>(seed % 4), whole);
    for (int i = 0; i < 400; ++i) {
      w.step(tolerance);
      if (testing::Test::HasFatalFailure()) {
        ADD_FAILURE() << "seed " << seed << ", event " << i;
        return;
      }
    }
    settled += w.settled, returned += w.returned, dropped += w.dropped, restored += w.restored;
  }
  for (const int n : {settled, returned, dropped, restored}) EXPECT_GT(n, 50);
}

TYPED_TEST(AnyOrder, TheAccountBalancesExactlyInWholeNumbers) { walk<TypeParam>(true, 0); }

TYPED_TEST(AnyOrder, TheAccountBalancesToRounding) {
  // Numbers stay below 100; each of the 400 events rounds a few times.
  walk<TypeParam>(false, 400 * 4 * 100 * double(std::numeric_limits<TypeParam>::epsilon()));
}

// --- without staleness: the periodic average, bit by bit

TYPED_TEST(AnyOrder, WithoutStalenessItIsThePeriodicAverage) {
  using T = TypeParam;
  std::mt19937 random(7);
  const auto number = [&] {
    return static_cast<T>(std::uniform_real_distribution<double>(-1, 1)(random));
  };
  constexpr size_t kNodes = 3, kCount = 17;
  std::vector<T> plain(kCount);
  for (T& x : plain) x = number();
  std::vector<std::unique_ptr<Bench<T>>> nodes;
  for (size_t n = 0; n < kNodes; ++n) nodes.push_back(std::make_unique<Bench<T>>(plain, 0));
  for (int round = 0; round < 10; ++round) {
    const std::vector<double> weights{4, 8, 12};
    std::vector<Draft> drafts;
    std::vector<T> mean(kCount);
    for (size_t n = 0; n < kNodes; ++n) {
      std::vector<T> local = plain;  // what it would train without hybridsync
      for (int step = 0; step < 4; ++step) {
        std::vector<T> by(kCount);
        for (size_t i = 0; i < kCount; ++i) by[i] = number(), local[i] -= by[i];
        nodes[n]->train(by, weights[n] / 4);
      }
      ASSERT_EQ(nodes[n]->theta, local);
      for (size_t i = 0; i < kCount; ++i) {
        const T term = static_cast<T>(weights[n] / 24) * (plain[i] - local[i]);
        mean[i] = n == 0 ? term : mean[i] + term;
      }
      drafts.push_back(nodes[n]->contribute());
      EXPECT_TRUE(nodes[n]->account.must_wait());
    }
    for (size_t i = 0; i < kCount; ++i) plain[i] -= mean[i];
    std::vector<ConstValues> terms;
    std::vector<double> given;
    for (const Draft& d : drafts) {
      terms.push_back(numbers<T>(d.body));
      given.push_back(d.contribution.weight);
    }
    std::vector<T> got(kCount), before = nodes[0]->anchor;
    weighted_mean(terms, given, std::span<T>(got));
    for (size_t n = 0; n < kNodes; ++n) {
      nodes[n]->result({drafts[n].contribution}, got);
      (void)nodes[n]->apply();
      ASSERT_EQ(nodes[n]->theta, plain) << "node " << n << ", round " << round;
    }
  }
}

// The interval of an account after a result that says 16, and after its node says 32.
std::vector<int64_t> intervals_of(int fragment, const Schedule& schedule) {
  const FragmentTable table{1, 1, {{0, Real::f32, 0, 2}, {1, Real::f32, 2, 2}}};
  Desk desk(table, {fragment});
  Account account(table.fragments[static_cast<size_t>(fragment)], kNode, 1, schedule, desk,
                  keep_all);
  std::vector<float> theta(2, 1.0f), out(2);
  account.set_anchor(std::span<const float>(theta));
  (void)desk.take_work();
  Result r;
  r.version = 1;
  r.mode = r.next_mode = Mode::delta;
  r.next_interval = 16;
  desk.tell(fragment, Moved{r, {}, {}, {}});
  std::vector<int64_t> seen = {account.interval()};
  (void)account.apply(std::span<const float>(theta), std::span<float>(out));
  seen.push_back(account.interval());
  account.set_interval(32);
  seen.push_back(account.interval());
  return seen;
}

TEST(Account, AnIntervalThatAdaptsIsThatOfTheFirstFragment) {
  const Schedule adapts{Strategy::periodic, 0, 4, 0, {Adapt::grow, 1, 64, 100}};
  EXPECT_EQ(intervals_of(0, adapts), (std::vector<int64_t>{4, 16, 32}));
  EXPECT_EQ(intervals_of(1, adapts), (std::vector<int64_t>{4, 4, 32}));
  EXPECT_EQ(intervals_of(1, kPeriodic), (std::vector<int64_t>{4, 16, 32}));
}

}  // namespace
}  // namespace hybridsync
