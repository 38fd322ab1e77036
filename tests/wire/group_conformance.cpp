// The suite. Bodies run as ranks and return what was wrong.
#include "tests/wire/group_conformance.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <random>
#include <sstream>
#include <thread>

#include "hybridsync/wire/node_memory.h"

namespace hybridsync {
namespace {

using namespace std::chrono_literals;

class ShmTestGroup : public TestGroup {
 public:
  ShmTestGroup(const std::string& run_id, int rank, int size, const Patience& patience)
      : memory_(make_node_memory(run_id, 0, rank, size, Patience{.limit = 20s})),
        group_(make_shm_group(*memory_, patience)) {}
  Group& group() override { return *group_; }
  void leave() override { group_.reset(); }
  std::span<std::byte> place(size_t bytes) override {
    return memory_->allocate_slots(bytes).slot(memory_->rank());
  }

 private:
  std::unique_ptr<NodeMemory> memory_;
  std::unique_ptr<Group> group_;
};

std::unique_ptr<TestGroup> make_shm(const std::string& run_id, int rank, int size,
                                    const Patience& patience) {
  return std::make_unique<ShmTestGroup>(run_id, rank, size, patience);
}

const std::vector<GroupSubject> kSubjects = {
    {"shm_threads", RanksAs::threads, make_shm},
    {"shm_processes", RanksAs::processes, make_shm},
};

std::vector<GroupCase> all_cases() {
  std::vector<GroupCase> cases;
  for (const auto& subject : kSubjects) {
    for (int size : {1, 2, 3, 4}) cases.push_back({subject, size});
  }
  return cases;
}

const Patience kPatient{.limit = 20s};

// Rank r's number i: of all magnitudes, so that another order of summation gives other bits.
template <typename T>
T number_of(int rank, size_t i, uint64_t seed) {
  uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15 + i * 0xbf58476d1ce4e5b9 +
               static_cast<uint64_t>(rank) * 0x94d049bb133111eb;
  x = (x ^ (x >> 31)) * 0xd6e8feb86659fd93;
  x ^= x >> 29;
  const double unit = static_cast<double>(static_cast<int64_t>(x)) / 0x1p63;
  return static_cast<T>(std::ldexp(unit, static_cast<int>(x % 17)));
}

template <typename T>
void fill(std::span<T> values, int rank, uint64_t seed) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = number_of<T>(rank, i, seed);
}

// The serial twin.
template <typename T>
std::vector<T> sums_of(int ranks, size_t count, uint64_t seed) {
  std::vector<T> sums(count);
  for (size_t i = 0; i < count; ++i) {
    sums[i] = number_of<T>(0, i, seed);
    for (int r = 1; r < ranks; ++r) sums[i] += number_of<T>(r, i, seed);
  }
  return sums;
}

std::vector<std::byte> bytes_of_rank(int rank, size_t count, uint64_t seed) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(static_cast<int>(number_of<float>(rank, i, seed)));
  }
  return bytes;
}

template <typename T>
std::string check_all_reduce(Group& group, std::span<T> values, uint64_t seed) {
  fill(values, group.rank(), seed);
  if (const Outcome outcome = group.all_reduce(values); !outcome.ok()) return outcome.why;
  const auto sums = sums_of<T>(group.size(), values.size(), seed);
  for (size_t i = 0; i < sums.size(); ++i) {
    if (std::memcmp(&values[i], &sums[i], sizeof(T)) == 0) continue;
    std::ostringstream text;
    text << "all_reduce of " << sums.size() << ": element " << i << " is " << values[i] << ", not "
         << sums[i];
    return text.str();
  }
  return "";
}

std::string check_all_gather(Group& group, size_t bytes, uint64_t seed) {
  std::vector<std::byte> all(bytes * group.size());
  const Outcome outcome = group.all_gather(bytes_of_rank(group.rank(), bytes, seed), all);
  if (!outcome.ok()) return outcome.why;
  for (int r = 0; r < group.size(); ++r) {
    const auto theirs = bytes_of_rank(r, bytes, seed);
    if (!std::equal(theirs.begin(), theirs.end(), all.begin() + r * bytes)) {
      return "all_gather of " + std::to_string(bytes) + ": rank " + std::to_string(r) + "'s bytes";
    }
  }
  return "";
}

std::string check_broadcast(Group& group, size_t bytes, int root, uint64_t seed) {
  auto values = bytes_of_rank(group.rank(), bytes, seed);
  if (const Outcome outcome = group.broadcast(values, root); !outcome.ok()) return outcome.why;
  return values == bytes_of_rank(root, bytes, seed)
             ? ""
             : "broadcast of " + std::to_string(bytes) + " from " + std::to_string(root);
}

// How a collective must fail, and go on failing.
std::string check_failure(Group& group, const Outcome& outcome, Outcome::Kind kind, int peer,
                          const std::string& says) {
  if (outcome.kind != kind) return "another kind: " + outcome.why;
  if (outcome.peer != peer) return "blames " + std::to_string(outcome.peer) + ": " + outcome.why;
  if (outcome.why.find(says) == std::string::npos)
    return "does not say " + says + ": " + outcome.why;
  const auto before = Clock::now();
  const Outcome again = group.barrier();
  if (again.kind != kind || again.peer != peer || again.why != outcome.why) {
    return "the next call ends differently: " + again.why;
  }
  return Clock::now() - before < 5s ? "" : "the next call waits again";
}

std::string rank_text(int rank) { return "rank " + std::to_string(rank) + " of node 0"; }

template <typename T>
std::string all_lengths_at(TestGroup& test, size_t slot_offset) {
  const size_t W = test.group().size();
  const size_t kMost = 300'007;
  const auto place = test.place((kMost + slot_offset) * sizeof(T));
  uint64_t seed = 1;
  for (size_t count :
       {size_t{0}, size_t{1}, size_t{2}, size_t{3}, size_t{7}, W - 1, W, W + 1, size_t{1000},
        size_t{4095}, size_t{4096}, size_t{4097}, size_t{4096} * W + 1, size_t{65'537}, kMost}) {
    T* const begin = reinterpret_cast<T*>(place.data()) + slot_offset;
    const auto wrong = check_all_reduce<T>(test.group(), {begin, count}, seed++);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

template <typename T>
std::string outside_of_slots(TestGroup& test) {
  uint64_t seed = 100;
  for (size_t count : {0, 1, 5, 4097, 65'537, 300'007}) {
    std::vector<T> values(count + 1);
    const auto wrong = check_all_reduce<T>(test.group(), std::span(values).subspan(1), seed++);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace

std::vector<std::string> GroupConformance::results_of(const Patience& patience,
                                                      const Body& body) const {
  const auto& subject = GetParam().subject;
  const std::string run_id = fresh_run_id();
  return run_ranks(subject.as, size(),
                   [&](int rank) { return body(*subject.make(run_id, rank, size(), patience)); });
}

void GroupConformance::run(const Patience& patience, const Body& body) const {
  const auto results = results_of(patience, body);
  for (int r = 0; r < size(); ++r) EXPECT_EQ(results[r], "") << "rank " << r;
}

TEST_P(GroupConformance, KnowsItsPlace) {
  const auto results = results_of(kPatient, [](TestGroup& test) {
    return std::to_string(test.group().rank()) + "/" + std::to_string(test.group().size());
  });
  for (int r = 0; r < size(); ++r) {
    EXPECT_EQ(results[r], std::to_string(r) + "/" + std::to_string(size()));
  }
}

TEST_P(GroupConformance, AllReduceInPlaceEqualsTheSerialSum) {
  run(kPatient, [](TestGroup& test) {
    return all_lengths_at<float>(test, 0) + all_lengths_at<double>(test, 0);
  });
}

TEST_P(GroupConformance, AllReduceAtUnalignedPlaces) {
  run(kPatient, [](TestGroup& test) {
    return all_lengths_at<float>(test, 1) + all_lengths_at<double>(test, 3);
  });
}

TEST_P(GroupConformance, AllReduceOfOrdinaryMemory) {
  run(kPatient, [](TestGroup& test) {
    return outside_of_slots<float>(test) + outside_of_slots<double>(test);
  });
}

TEST_P(GroupConformance, AllReduceAtDifferentPlaces) {
  run(kPatient, [](TestGroup& test) -> std::string {
    const size_t count = 100'003;
    const auto place = test.place((count + 8) * sizeof(float));
    std::vector<float> outside(count);
    const size_t own_offset = test.group().rank();
    float* const begin = reinterpret_cast<float*>(place.data()) + own_offset;
    const auto wrong = check_all_reduce<float>(test.group(), {begin, count}, 7);
    if (!wrong.empty()) return wrong;
    const bool in_slot = test.group().rank() == 0;
    return check_all_reduce<float>(test.group(),
                                   in_slot ? std::span(begin, count) : std::span(outside), 8);
  });
}

TEST_P(GroupConformance, AllReduceTouchesNothingElse) {
  run(kPatient, [](TestGroup& test) -> std::string {
    const size_t count = 50'021;
    const auto place = test.place((count + 2) * sizeof(float));
    auto* values = reinterpret_cast<float*>(place.data());
    values[0] = values[count + 1] = 1000.f + static_cast<float>(test.group().rank());
    const auto wrong = check_all_reduce<float>(test.group(), {values + 1, count}, 9);
    if (!wrong.empty()) return wrong;
    return values[0] == values[count + 1] &&
                   values[0] == 1000.f + static_cast<float>(test.group().rank())
               ? ""
               : "a neighbour changed";
  });
}

TEST_P(GroupConformance, AllGather) {
  run(kPatient, [](TestGroup& test) {
    std::string wrong;
    for (size_t bytes : {0, 1, 3, 333, 16'384, 262'144, 262'145, 1'000'003}) {
      wrong += check_all_gather(test.group(), bytes, bytes);
    }
    return wrong;
  });
}

TEST_P(GroupConformance, BroadcastFromEveryRank) {
  run(kPatient, [](TestGroup& test) {
    std::string wrong;
    for (int root = 0; root < test.group().size(); ++root) {
      for (size_t bytes : {0, 1, 333, 262'145, 1'000'003}) {
        wrong += check_broadcast(test.group(), bytes, root, bytes);
      }
    }
    return wrong;
  });
}

TEST_P(GroupConformance, NobodyPassesABarrierEarly) {
  std::atomic<int> arrived = 0;  // counts for ranks in one process only
  const bool one_process = GetParam().subject.as == RanksAs::threads;
  run(kPatient, [&](TestGroup& test) -> std::string {
    for (int round = 1; round <= 200; ++round) {
      arrived.fetch_add(1, std::memory_order_relaxed);
      if (const auto outcome = test.group().barrier(); !outcome.ok()) return outcome.why;
      if (one_process && arrived.load(std::memory_order_relaxed) < round * test.group().size()) {
        return "passed before all had come";
      }
    }
    return "";
  });
}

TEST_P(GroupConformance, ManyCollectivesBackToBack) {
  run(kPatient, [](TestGroup& test) -> std::string {
    std::mt19937 random(42);  // the same on every rank
    const auto place = test.place(40'000 * sizeof(double));
    auto* floats = reinterpret_cast<float*>(place.data());
    auto* doubles = reinterpret_cast<double*>(place.data());
    std::vector<float> outside(40'000);
    for (uint64_t i = 0; i < 600; ++i) {
      const size_t most = random() % 8 == 0 ? 40'000 : 300;
      const size_t count = random() % most;
      const int root = static_cast<int>(random() % test.group().size());
      std::string wrong;
      switch (random() % 6) {
        case 0:
          wrong = check_all_reduce<float>(test.group(), {floats, count}, i);
          break;
        case 1:
          wrong = check_all_reduce<double>(test.group(), {doubles, count}, i);
          break;
        case 2:
          wrong = check_all_reduce<float>(test.group(), {outside.data(), count}, i);
          break;
        case 3:
          wrong = check_all_gather(test.group(), count, i);
          break;
        case 4:
          wrong = check_broadcast(test.group(), count, root, i);
          break;
        case 5:
          wrong = test.group().barrier().why;
          break;
      }
      if (!wrong.empty()) return "collective " + std::to_string(i) + ": " + wrong;
    }
    return "";
  });
}

TEST_P(GroupConformance, CountsWhatItContributes) {
  run(kPatient, [](TestGroup& test) -> std::string {
    std::vector<float> values(10);
    std::vector<std::byte> all(7 * test.group().size());
    const bool ok = test.group().all_reduce(std::span(values)).ok() &&
                    test.group().all_gather(std::span(all).first(7), all).ok() &&
                    test.group().broadcast(std::span(all).first(5), 0).ok() &&
                    test.group().barrier().ok();
    const auto counters = test.group().counters();
    const bool alone = test.group().size() == 1;
    const int64_t bytes = alone ? 0 : 40 + 7 + (test.group().rank() == 0 ? 5 : 0);
    return ok && counters.bytes == bytes && counters.collectives == 4 && counters.reductions == 1
               ? ""
               : std::to_string(counters.bytes) + " bytes in " +
                     std::to_string(counters.collectives);
  });
}

TEST_P(GroupConformance, DifferentCallsAreAMismatch) {
  if (size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  using Call = std::function<Outcome(Group&)>;
  const auto reduce = [](auto zero, size_t count) -> Call {
    return [zero, count](Group& g) {
      std::vector<decltype(zero)> values(count);
      return g.all_reduce(std::span(values));
    };
  };
  const auto broadcast = [](int root) -> Call {
    return [root](Group& g) {
      std::vector<std::byte> bytes(8);
      return g.broadcast(bytes, root);
    };
  };
  const std::vector<std::tuple<Call, Call, std::string>> cases = {
      {reduce(0.f, 10), reduce(0.f, 11),
       "called all_reduce of 44 bytes in float, rank 0 called all_reduce of 40 bytes in float"},
      {reduce(0.f, 100'000), reduce(0.f, 10),
       "called all_reduce of 40 bytes in float, rank 0 called all_reduce of 400000 bytes"},
      {reduce(0.f, 10), reduce(0.0, 5), "in double, rank 0 called all_reduce of 40 bytes in float"},
      {broadcast(0), broadcast(1), "from rank 1, rank 0 called broadcast of 8 bytes from rank 0"},
      {[](Group& g) { return g.barrier(); }, reduce(0.f, 1), "rank 0 called barrier"},
  };
  for (const auto& [most, one, says] : cases) {
    run(kPatient, [&](TestGroup& test) {
      const bool odd = test.group().rank() == last();
      const Outcome outcome = odd ? one(test.group()) : most(test.group());
      return check_failure(test.group(), outcome, Outcome::Kind::mismatch, last(),
                           rank_text(last()) + " called ") +
             check_failure(test.group(), outcome, Outcome::Kind::mismatch, last(), says);
    });
  }
}

TEST_P(GroupConformance, ARankThatLeftIsNamed) {
  if (size() == 1) GTEST_SKIP() << "needs a peer";
  run(kPatient, [&](TestGroup& test) -> std::string {
    if (const auto outcome = test.group().barrier(); !outcome.ok()) return outcome.why;
    if (test.group().rank() == last()) {
      test.leave();
      std::this_thread::sleep_for(50ms);
      return "";
    }
    const auto before = Clock::now();
    const Outcome outcome = test.group().barrier();
    if (Clock::now() - before > 10s) return "waited too long";
    return check_failure(test.group(), outcome, Outcome::Kind::peer_lost, last(),
                         rank_text(last()) + " is gone (pid ");
  });
}

TEST_P(GroupConformance, ADeadRankIsNamed) {
  if (size() == 1) GTEST_SKIP() << "needs a peer";
  if (GetParam().subject.as == RanksAs::threads) GTEST_SKIP() << "threads die with their process";
  // Killed before a collective, and in the middle of a stream of them.
  for (const auto delay : {0ms, 3ms, 10ms, 17ms}) {
    const auto results = results_of(kPatient, [&](TestGroup& test) -> std::string {
      const auto start = Clock::now();
      std::vector<float> values(30'000);
      std::jthread killer;
      if (test.group().rank() == last()) {
        killer = std::jthread([&] {
          std::this_thread::sleep_for(delay);
          ::kill(::getpid(), SIGKILL);
        });
      }
      Outcome outcome;
      while (outcome.ok() && Clock::now() - start < 10s) {
        outcome = test.group().all_reduce(std::span(values));
      }
      if (Clock::now() - start > 10s) return "not seen in time";
      return check_failure(test.group(), outcome, Outcome::Kind::peer_lost, last(),
                           rank_text(last()) + " is gone (pid ");
    });
    for (int r = 0; r < last(); ++r) EXPECT_EQ(results[r], "") << "rank " << r;
    EXPECT_EQ(results[last()], "signal 9");
  }
}

TEST_P(GroupConformance, AStuckRankIsNamedAtTheLimit) {
  if (size() % 2 == 1) GTEST_SKIP() << "takes seconds: 2 and 4 ranks only";
  if (GetParam().subject.as == RanksAs::threads) GTEST_SKIP() << "a thread can't be stopped alone";
  run({.limit = 1s}, [&](TestGroup& test) -> std::string {
    int pid = ::getpid();
    std::vector<int> pids(size());
    const Outcome met = test.group().all_gather(std::as_bytes(std::span(&pid, 1)),
                                                std::as_writable_bytes(std::span(pids)));
    if (!met.ok()) return met.why;
    if (test.group().rank() == last()) {
      ::kill(::getpid(), SIGSTOP);
      return check_failure(test.group(), test.group().barrier(), Outcome::Kind::timed_out, last(),
                           rank_text(last()) + " came too late to barrier");
    }
    const auto before = Clock::now();
    const Outcome outcome = test.group().broadcast(std::as_writable_bytes(std::span(pids)), 0);
    if (test.group().rank() == 0) ::kill(pids[last()], SIGCONT);
    if (Clock::now() - before > 10s) return "waited too long";
    return check_failure(test.group(), outcome, Outcome::Kind::timed_out, last(),
                         "rank " + std::to_string(last()) +
                             " of node 0 did not come to broadcast of " +
                             std::to_string(size() * sizeof(int)) + " bytes within 1 s");
  });
}

TEST_P(GroupConformance, APhaseIsNamedAndMayTakeAsLongAsItTakes) {
  if (size() != 2) GTEST_SKIP() << "takes seconds: 2 ranks only";
  std::atomic<bool> named = false;
  const Patience patience{.limit = 300ms, .show_after = 40ms, .show = [&](const Waiting& waiting) {
                            named = named || waiting.what == "a long phase";
                          }};
  run(patience, [&](TestGroup& test) -> std::string {
    const bool late = test.group().rank() == last();
    test.group().set_phase("a long phase", false);
    if (late) std::this_thread::sleep_for(1s);
    if (const auto outcome = test.group().barrier(); !outcome.ok()) return outcome.why;
    if (!late && !named) return "not named";
    test.group().set_phase("", true);
    if (late) std::this_thread::sleep_for(2s);
    const Outcome outcome = test.group().barrier();
    return outcome.kind == Outcome::Kind::timed_out ? "" : "the limit is gone: " + outcome.why;
  });
}

TEST_P(GroupConformance, ALateRankIsTimedOutForAll) {
  if (size() % 2 == 1) GTEST_SKIP() << "takes seconds: 2 and 4 ranks only";
  run({.limit = 1s}, [&](TestGroup& test) -> std::string {
    const bool late = test.group().rank() == last();
    if (const auto outcome = test.group().barrier(); !outcome.ok()) return outcome.why;
    if (late) std::this_thread::sleep_for(3s);
    std::vector<float> values(4);
    return check_failure(test.group(), test.group().all_reduce(std::span(values)),
                         Outcome::Kind::timed_out, last(), "all_reduce of 16 bytes");
  });
}

TEST_P(GroupConformance, AnInterruptEndsTheWaitOfAll) {
  if (size() % 2 == 1) GTEST_SKIP() << "takes seconds: 2 and 4 ranks only";
  std::atomic<bool> interrupt = false;  // a forked rank has a copy of its own
  const Patience patience{.limit = 20s, .interrupt = &interrupt};
  run(patience, [&](TestGroup& test) -> std::string {
    if (const auto outcome = test.group().barrier(); !outcome.ok()) return outcome.why;
    if (test.group().rank() == last()) {
      std::this_thread::sleep_for(3s);
      const Outcome outcome = test.group().barrier();
      if (outcome.why.find("was interrupted: barrier") == std::string::npos) return outcome.why;
      return outcome.kind == Outcome::Kind::interrupted ? "" : "the wrong kind";
    }
    const auto before = Clock::now();
    std::jthread user([&] {
      std::this_thread::sleep_for(30ms);
      interrupt = true;
    });
    const Outcome outcome = test.group().barrier();
    if (Clock::now() - before > 2s) return "not polled often enough";
    return check_failure(test.group(), outcome, Outcome::Kind::interrupted, outcome.peer,
                         "was interrupted: barrier");
  });
}

TEST_P(GroupConformance, ALongWaitIsShown) {
  if (size() == 1) GTEST_SKIP() << "one rank never waits";
  run(kPatient, [&](TestGroup&) { return ""; });
  const std::string run_id = fresh_run_id();
  const auto results = run_ranks(GetParam().subject.as, size(), [&](int rank) -> std::string {
    std::vector<Waiting> shown;
    const Patience patience{.limit = 20s, .show_after = 40ms, .show = [&](const Waiting& waiting) {
                              shown.push_back(waiting);
                            }};
    const auto test = GetParam().subject.make(run_id, rank, size(), patience);
    if (const auto outcome = test->group().barrier(); !outcome.ok()) return outcome.why;
    shown.clear();  // the start may have been slow
    if (rank == last()) std::this_thread::sleep_for(600ms);
    std::vector<double> values(3);
    if (const auto outcome = test->group().all_reduce(std::span(values)); !outcome.ok()) {
      return outcome.why;
    }
    if (rank == last()) return "";
    if (shown.size() < 2) return "shown " + std::to_string(shown.size()) + " times";
    const Waiting& then = shown[1];
    if (then.seconds < 0.04 || then.seconds < shown[0].seconds) return "wrong seconds";
    if (then.what != "all_reduce of 24 bytes") return then.what;
    return then.peers.back() == last() ? "" : "waits for " + list_of(then.peers);
  });
  for (int r = 0; r < size(); ++r) EXPECT_EQ(results[r], "") << "rank " << r;
}

INSTANTIATE_TEST_SUITE_P(Group, GroupConformance, testing::ValuesIn(all_cases()),
                         [](const auto& info) {
                           return info.param.subject.name + "_" + std::to_string(info.param.size);
                         });

}  // namespace hybridsync
