// The reference document is the table of keys, and the table of keys is the structs.
#include "hybridsync/config/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "hybridsync/config/load.h"
#include "tests/generated_document.h"

namespace hybridsync {
namespace {

constexpr const char* kName = "configuration.md";

TEST(Reference, DocumentIsTheGeneratedText) { expect_generated(kName, reference_markdown()); }

TEST(Reference, DocumentAndKnownKeysHoldTheSameKeys) {
  const std::string text = document(kName);
  const std::regex row("\n\\| `([a-z_.]+)` \\|");
  std::set<std::string> documented;
  for (std::sregex_iterator it(text.begin(), text.end(), row), end; it != end; ++it) {
    documented.insert((*it)[1]);
  }
  const auto known = known_keys();
  EXPECT_EQ(documented, std::set<std::string>(known.begin(), known.end()));
  EXPECT_EQ(documented.size(), known.size()) << "a key stands twice";
}

// Breaks when a member is added to a struct without a key: the sizes then differ from these counts.
TEST(Reference, EveryMemberHasAKey) {
  [[maybe_unused]] const auto [train_model, data, optimizer, lr, momentum, weight_decay,
                               micro_batch, steps, evaluate_every, evaluate_samples, seed, clip,
                               ranks, threads, device, start_from] = TrainConfig{};
  [[maybe_unused]] const auto [name, size, strategy, group, overlap, bucket_bytes, timeout, every,
                               adapt, every_min, every_max, codec, outer, emulate, fragment_bytes,
                               parts, momentum_pull, second_moment_floor, staleness, deadline,
                               quorum, late] = TierConfig{};
  [[maybe_unused]] const auto [accumulate_steps, weighting] = AccumulateConfig{};
  [[maybe_unused]] const auto [running_stats, at_sync] = BatchNormConfig{};
  [[maybe_unused]] const auto [scaling, reference_batch, schedule, warmup, decay_every,
                               decay_factor, final_factor] = LearningRateConfig{};
  [[maybe_unused]] const auto [every_step] = StartConfig{};
  [[maybe_unused]] const auto [kind, levels, density, value_bits, selection, error_feedback,
                               residual, gamma, small_tensors, momentum_correction,
                               density_warmup] = CodecOptions{};
  [[maybe_unused]] const auto [outer_lr, outer_momentum, nesterov] = OuterConfig{};
  [[maybe_unused]] const auto [rate, rtt, step, speeds] = EmulateConfig{};
  [[maybe_unused]] const auto [folder, run_name] = RecordConfig{};
  // 22 members of a tier, of which outer and emulate are tables, and codec is 11 keys.
  EXPECT_EQ(known_keys().size(), size_t{16 + (22 - 3) + 11 + 2 + 2 + 7 + 1 + 3 + 4 + 2});
}

TEST(Reference, ExampleInTheDocumentIsValid) {
  const std::string text = document(kName);
  const std::string open = "```toml\n";
  const size_t begin = text.find(open) + open.size();
  const Config config = parse(text.substr(begin, text.find("```", begin) - begin), "example");
  EXPECT_EQ(config.ranks(), 4);
  EXPECT_EQ(config.tiers[1].emulate.rate, 100e6);
}

}  // namespace
}  // namespace hybridsync
