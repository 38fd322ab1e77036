// The table of strategies says what the keys say.
#include "hybridsync/launch/strategies.h"

#include <gtest/gtest.h>

#include <set>

#include "hybridsync/config/presets.h"
#include "tests/generated_document.h"

namespace hybridsync {
namespace {

StrategyEntry find(const std::string& name) {
  for (const StrategyEntry& e : strategies())
    if (e.name == name) return e;
  ADD_FAILURE() << name;
  return {};
}

TEST(Strategies, EveryNameOfTheConfigurationIsThere) {
  std::set<std::string> names;
  for (const StrategyEntry& e : strategies()) {
    EXPECT_TRUE(names.insert(e.name).second) << e.name;
    for (const std::string& text : {e.when, e.what, e.code, e.waits, e.applied, e.formula, e.state})
      EXPECT_FALSE(text.empty()) << e.name;
  }
  for (const Preset& preset : presets()) EXPECT_TRUE(names.contains(preset.name)) << preset.name;
  for (const char* plain : {"every_step", "periodic", "delayed"})
    EXPECT_TRUE(names.contains(plain)) << plain;
  EXPECT_EQ(names.size(), presets().size() + 3);
}

TEST(Strategies, BytesAreThoseOfTheCostFormula) {
  const StrategyEntry plain = find("every_step");
  EXPECT_EQ(plain.bits, 32);
  EXPECT_DOUBLE_EQ(bytes_per_round(plain, 1000, 4), 2 * 4 * 1000 * 3 / 4.0);
  EXPECT_EQ(bytes_per_round(plain, 1000, 1), 0) << "one node sends nothing";
  EXPECT_EQ(times_less(plain), 1);
  EXPECT_EQ(times_less(find("periodic")), 4);
  EXPECT_EQ(times_less(find("diloco")), 500);
  EXPECT_GT(times_less(find("sparse_sign")), 900);
}

TEST(Strategies, FormulasFollowTheKeys) {
  EXPECT_EQ(find("periodic").formula, "D = sum w_i d_i / sum w_i; a -= D; theta_i = a");
  EXPECT_EQ(find("diloco").formula,
            "D = sum w_i d_i / sum w_i; b = 0.9 b + D, a -= 0.7 (D + 0.9 b); theta_i = a");
  EXPECT_NE(find("sparse_loco").formula.find("C(d_i + 0.95 e)"), std::string::npos);
  EXPECT_NE(find("sparse_sign").formula.find("a - 0.8 (d_i - y_i)"), std::string::npos);
  EXPECT_NE(find("top_k").formula.find("u_i = m u_i + g_i"), std::string::npos);
}

TEST(Strategies, TextNamesAllOfThem) {
  const std::string text = strategies_text(1e6, 4);
  for (const StrategyEntry& e : strategies())
    EXPECT_NE(text.find("\n" + e.name), std::string::npos) << e.name;
  EXPECT_NE(text.find("6.00 MB per node and round of all parameters"), std::string::npos) << text;
  EXPECT_EQ(strategies_json(1e6, 4).size(), strategies().size());
}

TEST(Strategies, DocumentIsTheGeneratedText) {
  expect_generated("strategies.md", strategies_markdown());
}

}  // namespace
}  // namespace hybridsync
