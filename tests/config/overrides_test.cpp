// --set: values laid over the file's, by place and by name, and their mistakes.
#include <gtest/gtest.h>

#include "hybridsync/config/load.h"
#include "tests/config/message_of.h"

namespace hybridsync {
namespace {

constexpr const char* kTiers =
    "[[tier]]\nname = \"node\"\nsize = 2\n[[tier]]\nname = \"far\"\nsize = 2\nstrategy = "
    "\"periodic\"\n";

Config with(const std::vector<std::string>& sets, const std::string& text = kTiers) {
  return parse(text, "h.toml", sets);
}

std::string mistake_with(const std::string& set, const std::string& text = kTiers) {
  return message_of([&] { with({set}, text); });
}

TEST(Set, OverridesInOrder) {
  EXPECT_EQ(with({"train.lr=0.1"}).train.lr, 0.1);
  EXPECT_EQ(with({"train.lr=0.1", "train.lr = 0.2"}).train.lr, 0.2);
  EXPECT_EQ(with({"accumulate.steps=3"}, "accumulate.steps = 9").accumulate.steps, 3);
}

TEST(Set, TiersByPlaceAndName) {
  EXPECT_EQ(with({"tier.1.every=8"}).tiers[1].every, 8);
  EXPECT_EQ(with({"tier[1].every=8"}).tiers[1].every, 8);
  EXPECT_EQ(with({"tier.far.every=8"}).tiers[1].every, 8);
  EXPECT_EQ(with({"tier.site.every=8"}, "[[tier]]\n[[tier]]\n").tiers[1].every, 8);
  EXPECT_EQ(with({"tier.node.overlap=off"}).tiers[0].overlap, Overlap::off);
}

TEST(Set, ValuesAreTomlOrElseText) {
  EXPECT_EQ(with({"train.model=char-gpt"}).train.model, "char-gpt");
  EXPECT_EQ(with({"train.model=\"char-gpt\""}).train.model, "char-gpt");
  EXPECT_EQ(with({"tier.1.emulate.rate=100 Mbit/s"}).tiers[1].emulate.rate, 100e6);
  EXPECT_EQ(with({"tier.1.outer={ lr = 0.5, momentum = 0.25 }"}).tiers[1].outer,
            (OuterConfig{0.5, 0.25, false}));
  EXPECT_EQ(with({"train.data=a=b"}).train.data, "a=b");
  EXPECT_EQ(with({"train.data=1\nlr = 2"}).train.data, "1\nlr = 2");
}

TEST(Set, AddsTablesAndTiers) {
  const Config c = with({"tier.0.size=2", "tier.1.size=3", "start.every_step=4"}, "");
  ASSERT_EQ(c.tiers.size(), 2u);
  EXPECT_EQ(c.ranks(), 6);
  EXPECT_EQ(c.tiers[1].name, "site");
  EXPECT_EQ(c.start.every_step, 4);
}

TEST(Set, MistakesShowTheAssignment) {
  EXPECT_EQ(mistake_with("tier.1.every=abc"),
            "--set tier.1.every=abc: tier[1].every = \"abc\": expected an integer, found a string");
  EXPECT_EQ(mistake_with("tier.far.every=0"),
            "--set tier.far.every=0: tier[1].every = 0: must be at least 1");
  EXPECT_EQ(mistake_with("tier.1.evry=8"),
            "--set tier.1.evry=8: tier[1].evry = 8: unknown key; did you mean tier.every?");
  EXPECT_EQ(mistake_with("trian.lr=8"),
            "--set trian.lr=8: [trian]: unknown table; did you mean train?");
  EXPECT_EQ(
      mistake_with("train.ranks=7"),
      "h.toml:3: tier[0].size = 2: 7 ranks (train.ranks) cannot be divided by it; change one of "
      "them");
}

TEST(Set, MistakesOfForm) {
  const std::string form = ": expected KEY=VALUE, for example train.lr=0.1";
  EXPECT_EQ(mistake_with("train.lr"), "--set train.lr" + form);
  EXPECT_EQ(mistake_with("=3"), "--set =3" + form);
  EXPECT_EQ(mistake_with("train..lr=3"), "--set train..lr=3" + form);
  EXPECT_EQ(mistake_with("train.lr.x=3", "train.lr = 1"),
            "--set train.lr.x=3: h.toml:1 gives a value to lr, so it has no keys");
}

TEST(Set, MistakesOfTiers) {
  EXPECT_EQ(mistake_with("tier.3.every=8"),
            "--set tier.3.every=8: there are 2 tiers, counted from 0; tier.2 would be the next");
  EXPECT_EQ(mistake_with("tier.fat.every=8"),
            "--set tier.fat.every=8: no tier is named fat; there are node, far; did you mean far?");
  EXPECT_EQ(mistake_with("tier.far.every=8", ""),
            "--set tier.far.every=8: no tier is named far; there are none");
  EXPECT_EQ(
      mistake_with("tier.2.size=2"),
      "--set tier.2.size=2: [tier[2]]: a third tier is not available in this version; one tier "
      "of ranks and one of nodes are");
  EXPECT_EQ(mistake_with("tier.0.size=2", "tier = 3"),
            "--set tier.0.size=2: tier is not a list of tables; write [[tier]] once per tier");
}

}  // namespace
}  // namespace hybridsync
