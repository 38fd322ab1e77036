#include "hybridsync/config/presets.h"

#include <gtest/gtest.h>

#include "hybridsync/config/error.h"
#include "hybridsync/config/load.h"
#include "tests/config/message_of.h"

namespace hybridsync {
namespace {

TierConfig outer_tier(const std::string& keys) {
  return parse("[[tier]]\n[[tier]]\nsize = 2\n" + keys, "preset.toml").tiers[1];
}

TEST(Presets, AreWhatTheirPapersSay) {
  const TierConfig diloco = outer_tier("strategy = 'diloco'");
  EXPECT_EQ(diloco.strategy, Strategy::periodic);
  EXPECT_EQ(diloco.every, 500);
  EXPECT_EQ(diloco.outer, (OuterConfig{0.7, 0.9, true}));
  EXPECT_EQ(diloco.codec, CodecOptions{});
  const TierConfig sparse = outer_tier("strategy = 'sparse_loco'");
  EXPECT_EQ(sparse.every, 15);
  EXPECT_EQ(sparse.outer, OuterConfig{});
  EXPECT_EQ(sparse.codec.kind, CodecKind::top_k);
  EXPECT_EQ(sparse.codec.value_bits, 2);
  EXPECT_EQ(sparse.codec.error_feedback, 0.95);
  const TierConfig signs = outer_tier("strategy = 'sparse_sign'\nevery = 8");
  EXPECT_EQ(signs.strategy, Strategy::periodic);
  EXPECT_EQ(signs.parts, 8) << "one for each step";
  EXPECT_EQ(signs.codec.kind, CodecKind::top_k);
  EXPECT_EQ(signs.codec.density, 0.07);
  EXPECT_EQ(signs.codec.value_bits, 1);
  EXPECT_EQ(signs.codec.gamma, 0.8);
  EXPECT_EQ(signs.codec.error_feedback, 0.9);
  EXPECT_EQ(signs.codec.small_tensors, SmallTensorCode::coded);
  EXPECT_EQ(signs.outer, (OuterConfig{kAutoLr, 0.3, true}));
  EXPECT_EQ(signs.momentum_pull, 0.6);
  EXPECT_EQ(signs.second_moment_floor, 0.03);
  const TierConfig top_k = outer_tier("strategy = 'top_k'");
  EXPECT_EQ(top_k.strategy, Strategy::every_step);
  EXPECT_EQ(top_k.codec.kind, CodecKind::top_k);
  EXPECT_EQ(top_k.codec.selection, Selection::chunks);
  EXPECT_EQ(top_k.codec.density, 0.01);
  EXPECT_EQ(top_k.codec.value_bits, 16);
  EXPECT_EQ(top_k.codec.error_feedback, 1);
  EXPECT_TRUE(top_k.codec.momentum_correction);
  EXPECT_EQ(top_k.codec.density_warmup, 0);
}

TEST(Presets, YieldToTheUsersKeysWhereverTheyStand) {
  for (const std::string keys : {"strategy = 'diloco'\nevery = 8\ncodec = 'int4'",
                                 "every = 8\ncodec = 'int4'\nstrategy = 'diloco'"}) {
    const TierConfig tier = outer_tier(keys);
    EXPECT_EQ(tier.every, 8) << keys;
    EXPECT_EQ(tier.codec.kind, CodecKind::int4) << keys;
    EXPECT_EQ(tier.outer.momentum, 0.9) << keys;
  }
  const Config set = parse("[[tier]]\n[[tier]]\nsize = 2", "preset.toml",
                           {"tier.1.strategy=diloco", "tier.1.every=8"});
  EXPECT_EQ(set.tiers[1].every, 8);
  EXPECT_EQ(set.tiers[1].outer.lr, 0.7);
}

TEST(Presets, OfOneCodecSayNothingOfAnother) {
  const TierConfig tier = outer_tier("strategy = 'sparse_loco'\ncodec = 'int4'");
  EXPECT_EQ(tier.every, 15);
  EXPECT_EQ(tier.codec.kind, CodecKind::int4);
  EXPECT_EQ(tier.codec.value_bits, CodecOptions{}.value_bits);
}

TEST(Presets, OfACodecThatIsNamedOnceMoreStayWhatTheyAre) {
  EXPECT_EQ(outer_tier("strategy = 'top_k'\ncodec = 'top_k'"), outer_tier("strategy = 'top_k'"));
}

TEST(Presets, ArePrintedAsWhatTheyBecame) {
  for (const std::string name : {"sparse_loco", "sparse_sign", "top_k"}) {
    const Config config =
        parse("[[tier]]\n[[tier]]\nsize = 2\nstrategy = '" + name + "'", "a.toml");
    const std::string text = to_toml(config);
    EXPECT_EQ(parse(text, "a.toml").tiers, config.tiers);
    EXPECT_EQ(text.find("strategy = \"" + name), std::string::npos);
  }
}

TEST(Presets, AreNothingForTheInnermostTier) {
  const std::string mistake =
      message_of([] { (void)parse("[[tier]]\nstrategy = 'diloco'", "a.toml"); });
  EXPECT_NE(mistake.find("a.toml:2: tier[0].strategy"), std::string::npos) << mistake;
}

}  // namespace
}  // namespace hybridsync
