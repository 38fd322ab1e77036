// NodeMemory: what is shared, who may join, and what is said when somebody does not.
#include "hybridsync/wire/node_memory.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <mutex>
#include <thread>

#include "hybridsync/config/error.h"
#include "tests/wire/ranks.h"

namespace hybridsync {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

const Patience kPatient{.limit = 20s};

class NodeMemoryTest : public testing::TestWithParam<RanksAs> {
 protected:
  void SetUp() override {
    if (GetParam() == RanksAs::processes && !can_fork()) {
      GTEST_SKIP() << "ThreadSanitizer does not follow forked processes";
    }
  }
  std::vector<std::string> run(int size, const RankBody& body) const {
    return run_ranks(GetParam(), size, body);
  }
  const std::string run_id_ = fresh_run_id();
};

// A barrier made of nothing but allocations.
void meet(NodeMemory& memory) { memory.allocate_common(1); }

TEST_P(NodeMemoryTest, SlotsAndCommonMemoryAreSharedZeroedAndAligned) {
  EXPECT_THAT(run(3,
                  [&](int rank) -> std::string {
                    const auto memory = make_node_memory(run_id_, 0, rank, 3, kPatient);
                    const auto slots = memory->allocate_slots(1000);
                    const auto common = memory->allocate_common(100);
                    for (int r = 0; r < 3; ++r) {
                      if (reinterpret_cast<uintptr_t>(slots.slot(r).data()) % 64 != 0)
                        return "not aligned";
                      if (slots.slot(r).size() != 1000 || slots.slot(r)[999] != std::byte{0})
                        return "not zeroed";
                    }
                    if (common.size() != 100 || common[99] != std::byte{0})
                      return "common memory not zeroed";
                    meet(*memory);
                    slots.slot(rank)[999] = static_cast<std::byte>(rank + 1);
                    common[rank] = static_cast<std::byte>(rank + 10);
                    meet(*memory);
                    for (int r = 0; r < 3; ++r) {
                      if (slots.slot(r)[999] != static_cast<std::byte>(r + 1))
                        return "slots are not shared";
                      if (common[r] != static_cast<std::byte>(r + 10))
                        return "common memory is not shared";
                    }
                    meet(*memory);
                    return "";
                  }),
              Each(""));
}

TEST_P(NodeMemoryTest, FindsOnlyItsOwnSlots) {
  EXPECT_THAT(run(2,
                  [&](int rank) -> std::string {
                    const auto memory = make_node_memory(run_id_, 0, rank, 2, kPatient);
                    const auto first = memory->allocate_slots(100);
                    const auto second = memory->allocate_slots(0);
                    const auto third = memory->allocate_slots(8192);
                    const auto own = third.slot(rank);
                    const auto* found = memory->find(own.data() + 8191);
                    if (!found || found->base != third.base || found->id != 2) return "not found";
                    if (memory->find(own.data() + 8192)) return "found behind the slot";
                    if (memory->find(third.slot(1 - rank).data()))
                      return "found in another rank's slot";
                    if (memory->find(second.slot(rank).data())) return "found in an empty slot";
                    std::byte elsewhere;
                    if (memory->find(&elsewhere)) return "found outside";
                    return memory->find(first.slot(rank).data())->bytes == 100 ? ""
                                                                               : "first not found";
                  }),
              Each(""));
}

TEST_P(NodeMemoryTest, DifferentSizesThrowOnAllRanksWithBoth) {
  const auto results = run(3, [&](int rank) -> std::string {
    const auto memory = make_node_memory(run_id_, 2, rank, 3, kPatient);
    try {
      memory->allocate_slots(rank == 1 ? 128 : 64);
      return "no error";
    } catch (const RunEnded& error) {
      try {
        meet(*memory);
        return "no second error";
      } catch (const RunEnded& again) {
        return error.what() == std::string(again.what()) ? error.what() : "another error";
      }
    }
  });
  EXPECT_THAT(results, Each("rank 1 of node 2 allocates 128 bytes per rank, rank 0 64 bytes per "
                            "rank"));
}

TEST_P(NodeMemoryTest, DifferentKindsThrowOnAllRanks) {
  const auto results = run(2, [&](int rank) -> std::string {
    const auto memory = make_node_memory(run_id_, 0, rank, 2, kPatient);
    if (rank == 1) memory->allocate_slots(64);
    meet(*memory);
    return "";
  });
  EXPECT_THAT(results, Each(AllOf(HasSubstr("64 bytes per rank"), HasSubstr("1 common bytes"))));
}

TEST_P(NodeMemoryTest, TheMissingRankIsNamed) {
  const auto results = run(3, [&](int rank) -> std::string {
    if (rank == 1) return "";
    try {
      make_node_memory(run_id_, 4, rank, 3, {.limit = 300ms});
      return "no error";
    } catch (const RunEnded& error) {
      return error.what();
    }
  });
  EXPECT_EQ(results[0], "rank 1 of node 4 did not come to the node's memory within 0.3 s");
  EXPECT_THAT(results[2], HasSubstr("1 of node 4 did not come to the node's memory within 0.3 s"));
}

TEST_P(NodeMemoryTest, ALateAllocationNamesTheRankThatDidNotCome) {
  const auto results = run(3, [&](int rank) -> std::string {
    const auto memory = make_node_memory(run_id_, 0, rank, 3, {.limit = 400ms});
    if (rank == 2) std::this_thread::sleep_for(1500ms);
    try {
      memory->allocate_common(7);
      return "no error";
    } catch (const RunEnded& error) {
      return error.what();
    }
  });
  EXPECT_THAT(results, Each("rank 2 of node 0 did not come to allocation of 7 common bytes within "
                            "0.4 s"));
}

TEST_P(NodeMemoryTest, AnInterruptEndsTheWait) {
  std::atomic<bool> interrupt = true;
  EXPECT_THROW(make_node_memory(run_id_, 0, 0, 2, {.limit = 20s, .interrupt = &interrupt}),
               Interrupted);
  EXPECT_THROW(make_node_memory(run_id_, 0, 1, 2, {.limit = 20s, .interrupt = &interrupt}),
               Interrupted);
}

TEST_P(NodeMemoryTest, ALongStartIsShown) {
  const auto results = run(2, [&](int rank) -> std::string {
    std::vector<Waiting> shown;
    if (rank == 1) std::this_thread::sleep_for(400ms);
    make_node_memory(run_id_, 0, rank, 2,
                     {.limit = 20s, .show_after = 50ms, .show = [&](const Waiting& waiting) {
                        shown.push_back(waiting);
                      }});
    if (rank == 1) return "";
    if (shown.empty()) return "not shown";
    return counted("rank", shown[0].peers) + ": " + shown[0].what;
  });
  EXPECT_EQ(results[0], "rank 1: the node's memory");
}

TEST_P(NodeMemoryTest, OneNameServesOneMeetingAfterTheOther) {
  EXPECT_THAT(run(3,
                  [&](int rank) -> std::string {
                    for (int i = 0; i < 20; ++i) {
                      const auto memory = make_node_memory(run_id_, 0, rank, 3, kPatient);
                      const auto common = memory->allocate_common(3);
                      common[rank] = std::byte{1};
                      meet(*memory);
                      if (common[0] != std::byte{1} || common[1] != std::byte{1} ||
                          common[2] != std::byte{1}) {
                        return "two meetings were mixed up";
                      }
                      meet(*memory);
                    }
                    return "";
                  }),
              Each(""));
}

TEST_P(NodeMemoryTest, NodesOfOneRunDoNotMeet) {
  EXPECT_THAT(
      run(4,
          [&](int rank) -> std::string {
            const auto memory = make_node_memory(run_id_, rank / 2, rank % 2, 2, kPatient);
            const auto common = memory->allocate_common(1);
            if (memory->rank() == 0) common[0] = static_cast<std::byte>(memory->node() + 1);
            meet(*memory);
            return common[0] == static_cast<std::byte>(rank / 2 + 1) ? "" : "another node's memory";
          }),
      Each(""));
}

TEST_P(NodeMemoryTest, EveryRankKnowsTheProcessesOfAll) {
  const bool threads = GetParam() == RanksAs::threads;
  EXPECT_THAT(run(2,
                  [&](int rank) -> std::string {
                    const auto memory = make_node_memory(run_id_, 0, rank, 2, kPatient);
                    if (memory->pid(rank) != ::getpid()) return "wrong pid of itself";
                    if ((memory->pid(1 - rank) == ::getpid()) != threads)
                      return "wrong pid of the other";
                    const bool lives = memory->alive(0) && memory->alive(1);
                    meet(*memory);
                    return lives ? "" : "a living rank counts as dead";
                  }),
              Each(""));
}

TEST_P(NodeMemoryTest, ADeadRankIsSeenAndNamed) {
  if (GetParam() == RanksAs::threads) GTEST_SKIP() << "threads die with their process";
  const auto results = run(3, [&](int rank) -> std::string {
    const auto memory = make_node_memory(run_id_, 0, rank, 3, kPatient);
    meet(*memory);
    if (rank == 1) ::kill(::getpid(), SIGKILL);
    try {
      memory->allocate_slots(10);
      return "no error";
    } catch (const RunEnded& error) {
      const auto start = Clock::now();
      while (memory->alive(1) && Clock::now() - start < 10s) std::this_thread::sleep_for(1ms);
      return memory->alive(1) ? "still alive" : error.what();
    }
  });
  EXPECT_THAT(results[0], AllOf(HasSubstr("rank 1 of node 0 is gone (pid "),
                                HasSubstr("allocation of 10 bytes per rank")));
  EXPECT_EQ(results[1], "signal 9");
  EXPECT_EQ(results[2], results[0]);
}

TEST_P(NodeMemoryTest, NothingIsLeftInAnyFileSystem) {
  const auto entries = [] {
    std::vector<std::string> names;
    for (const auto* folder : {"/dev/shm", "/tmp"}) {
      if (!std::filesystem::exists(folder)) continue;
      for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        const auto name = entry.path().string();
        if (name.find("hybridsync") != std::string::npos) names.push_back(name);
      }
    }
    return names;
  };
  const auto before = entries();
  EXPECT_THAT(run(2,
                  [&](int rank) -> std::string {
                    const auto memory = make_node_memory(run_id_, 0, rank, 2, kPatient);
                    memory->allocate_slots(1 << 20);
                    meet(*memory);
                    return entries() == before ? "" : "a file appeared";
                  }),
              Each(""));
}

INSTANTIATE_TEST_SUITE_P(, NodeMemoryTest, testing::Values(RanksAs::threads, RanksAs::processes),
                         [](const auto& info) {
                           return info.param == RanksAs::threads ? "threads" : "processes";
                         });

std::string refusal(const std::string& run_id, int rank, int size) {
  try {
    make_node_memory(run_id, 0, rank, size, kPatient);
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(NodeMemoryRefusals, ImpossiblePlacesAndNames) {
  EXPECT_EQ(refusal("x", 2, 2), "rank 2 of node 0 is out of range: the node has 2 ranks");
  EXPECT_EQ(refusal("x", -1, 2), "rank -1 of node 0 is out of range: the node has 2 ranks");
  EXPECT_EQ(refusal("x", 0, 0), "a node of 0 ranks: at least 1 is needed");
  EXPECT_THAT(refusal(std::string(65, 'x'), 0, 2), HasSubstr("has 65 bytes: shorten it to 64"));
}

TEST(NodeMemoryRefusals, ATakenRankAndAnotherSize) {
  const std::string run_id = fresh_run_id();
  std::jthread host([&] { make_node_memory(run_id, 0, 0, 3, kPatient); });
  std::jthread first([&] { make_node_memory(run_id, 0, 1, 3, kPatient); });
  EXPECT_EQ(refusal(run_id, 1, 2),
            "rank 1 of node 0 was started for 2 ranks per node, rank 0 for 3");
  std::this_thread::sleep_for(200ms);  // one of the two that call themselves rank 1 is refused
  std::string second;
  std::jthread same([&] { second = refusal(run_id, 2, 3); });
  same.join();
  EXPECT_EQ(second, "");
}

TEST(NodeMemoryRefusals, ATakenRank) {
  const std::string run_id = fresh_run_id();
  std::jthread host([&] { make_node_memory(run_id, 0, 0, 3, kPatient); });
  std::vector<std::string> refusals(2);
  std::atomic<int> refused = 0;
  {
    std::vector<std::jthread> twins;
    for (int i = 0; i < 2; ++i) {
      twins.emplace_back([&, i] {
        refusals[i] = refusal(run_id, 1, 3);
        refused += !refusals[i].empty();
      });
    }
    while (refused == 0) std::this_thread::sleep_for(1ms);
    make_node_memory(run_id, 0, 2, 3, kPatient);
  }
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(refusals[0] + refusals[1],
            "rank 1 of node 0 is taken by process " + std::to_string(::getpid()));
}

TEST(NodeMemoryAlone, NeedsNoPeersAndNoRunId) {
  const auto memory = make_node_memory("", 0, 0, 1, {.limit = 0ms});
  EXPECT_EQ(memory->allocate_slots(5).slot(0).size(), 5u);
  EXPECT_EQ(memory->allocate_common(5).size(), 5u);
  EXPECT_TRUE(memory->alive(0));
}

// A process of another user at the socket is not let in, and one that listens there is not
// believed.
TEST(NodeMemoryUsers, AnotherUserIsTurnedAway) {
  if (!can_fork()) GTEST_SKIP() << "ThreadSanitizer does not follow forked processes";
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const std::string run_id = fresh_run_id();
  for (const int stranger : {0, 1}) {
    const auto results = run_ranks(RanksAs::processes, 2, [&](int rank) -> std::string {
      if (rank == stranger && ::setuid(65534) != 0) return "setuid failed";
      try {
        make_node_memory(run_id, 0, rank, 2, {.limit = 400ms});
        return "they met";
      } catch (const RunEnded& error) {
        return error.what();
      }
    });
    EXPECT_EQ(results[0], "rank 1 of node 0 did not come to the node's memory within 0.4 s");
    EXPECT_THAT(results[1], HasSubstr("did not come to the node's memory within 0.4 s"));
  }
}

}  // namespace
}  // namespace hybridsync
