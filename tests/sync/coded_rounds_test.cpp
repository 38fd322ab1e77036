// Rounds whose numbers travel as codes: with error feedback and a last plain round nothing is lost,
// whatever the codec, however late contributions are.
#include <gtest/gtest.h>

#include <cmath>

#include "hybridsync/decide/codec_cost.h"
#include "hybridsync/sync/coder.h"
#include "tests/sync/vector_replica.h"

namespace hybridsync {
namespace {

constexpr size_t kParameters = 5000;
constexpr int kSteps = 60;

CodecOptions codec_of(CodecKind kind, Residual residual, double error_feedback = 1) {
  CodecOptions codec;
  codec.kind = kind;
  codec.residual = residual;
  codec.gamma = 1;  // forgets nothing
  codec.error_feedback = error_feedback;
  codec.density = 0.05;
  return codec;
}

Config coded(Config config, const CodecOptions& codec) {
  config.tiers[1].codec = codec;
  config.tiers[1].fragment_bytes = 4 * 1024;
  return config;
}

struct End {
  std::vector<float> theta;
  StepRecord last;
  int64_t sent = 0;
  int64_t before = 0, after = 0;  // of coding, by its node
};

// Every node pulls with a constant gradient of its own, which is different for every parameter.
std::vector<End> train(const Config& config, int steps = kSteps) {
  std::vector<End> ends(static_cast<size_t>(config.ranks()));
  run_all(config, [&](const Environment& e) {
    TestRank rank(config, e, kParameters, {});
    End& end = ends[static_cast<size_t>(e.rank)];
    rank.on_record = [&](const StepRecord& r) {
      end.last = r;
      end.sent += r.bytes_sent_slow;
      end.before += r.codec_bytes_before;
      end.after += r.codec_bytes_after;
    };
    rank.shape = [](size_t i) { return std::sin(static_cast<float>(7 * i)); };
    for (int step = 0; step < steps; ++step) {
      rank.sync.pad();
      (void)rank.step(0.01f * static_cast<float>(1 + e.node), 8);
    }
    rank.finish();
    end.theta = rank.replica.theta;
  });
  return ends;
}

// The largest difference of any number.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double(a[i]) - b[i]));
  return most;
}

struct Coding {
  const char* name;
  CodecKind kind;
  Residual residual;
};
class CodedRounds : public testing::TestWithParam<Coding> {
 protected:
  CodecOptions codec(double error_feedback = 1) const {
    return codec_of(GetParam().kind, GetParam().residual, error_feedback);
  }
};

void expect_settled(const std::vector<End>& ends, const Config& config) {
  for (const End& end : ends) {
    EXPECT_EQ(end.theta, ends[0].theta) << "all ranks hold the same bits";
    EXPECT_EQ(end.last.ledger.mismatches, 0);
  }
  for (size_t r = 0; r < ends.size(); r += static_cast<size_t>(config.ranks_per_node())) {
    const LedgerRecord& l = ends[r].last.ledger;
    EXPECT_EQ(l.contributed, l.applied + l.returned + l.dropped);
    EXPECT_EQ(l.lost, 0);
  }
}

TEST_P(CodedRounds, SynchronousOnesGiveInTheEndWhatPlainOnesGive) {
  const Config plain = coded(two_tiers(2, 3, Strategy::periodic, 4), {});
  const Config config = coded(plain, codec());
  const auto expected = train(plain), ends = train(config);
  expect_settled(ends, config);
  if (Coder(codec()).flushes())
    EXPECT_LT(distance(ends[0].theta, expected[0].theta), 2e-5);
  else
    EXPECT_GT(ends[0].last.ledger.decayed_norm, 0) << "what stays beside is counted";
  const int64_t whole = expected[0].sent;
  EXPECT_LT(ends[0].sent, whole * (GetParam().kind <= CodecKind::fp16 ? 0.65 : 0.45));
}

// Each way 2 b N (M - 1) / M per node and round, with b the code's bits: a contribution to every
// other owner, and the results of what the node owns to all others.
TEST_P(CodedRounds, BytesAreWhatTheCostFormulaSays) {
  const Config config = coded(two_tiers(1, 3, Strategy::periodic, 4), codec());
  const auto ends = train(config);
  const CodecCost cost = codec_cost(config.tiers[1].codec);
  const FragmentTable table =
      plan_fragments(5008, 0, 3, 1, config.tiers[1].fragment_bytes);  // in lines of 64 bytes
  double numbers = 0, of_a_round = 0;
  for (const Fragment& f : table.fragments) numbers += static_cast<double>(f.count);
  constexpr int kRounds = kSteps / 4;
  int64_t before = 0, after = 0, sent = 0;
  for (const End& end : ends) {
    before += end.before;
    after += end.after;
    sent += end.sent;
  }
  // Three contributions and a result; the last round is plain and not counted.
  EXPECT_EQ(before, kRounds * 4 * 4 * numbers);
  const auto make = make_codec(config.tiers[1].codec);
  for (const Fragment& f : table.fragments)
    of_a_round += static_cast<double>(make->bound(static_cast<size_t>(f.count)));
  if (cost.exact)
    EXPECT_EQ(after, kRounds * 4 * of_a_round);
  else
    EXPECT_LT(after, kRounds * 4 * of_a_round);
  // On the wire: two contributions, and the result twice; in the last round plainly.
  const double plain_round = 4 * numbers * 4;
  const double messages = 4.0 * static_cast<double>(table.fragments.size()) * (kRounds + 2);
  constexpr double kHeaders = 350;  // bytes of a message beside its numbers, and the small messages
  EXPECT_GT(sent, after + plain_round);
  EXPECT_LT(sent, after + plain_round + kHeaders * messages);
}

TEST_P(CodedRounds, LateOnesLoseNothing) {
  Config plain = two_tiers(1, 3, Strategy::delayed, 3);
  plain.tiers[1].staleness = 2;
  plain.tiers[1].emulate.step = 0.002;
  plain.tiers[1].emulate.speeds = "1 1 0.3";
  for (const Late late : {Late::fold, Late::return_}) {
    Config config = coded(plain, codec());
    config.tiers[1].late = late;
    const auto ends = train(config);
    expect_settled(ends, config);
    // Every node's work counts by its samples in the round that applies it: what the parameters
    // come to depends on who was together in it, but all of it is in them.
    EXPECT_TRUE(std::all_of(ends[0].theta.begin(), ends[0].theta.end(),
                            [](float x) { return std::isfinite(x); }));
    EXPECT_EQ(ends[0].last.samples, 8 * 3 * kSteps);
  }
}

TEST_P(CodedRounds, OneNodeIsTheIdentityInTheEnd) {
  const Config config = coded(two_tiers(1, 1, Strategy::periodic, 4), codec());
  const auto ends = train(config);
  for (size_t i = 0; i < kParameters; ++i) {
    const double expected = 1 - kSteps * 0.5 * 0.01 * std::sin(static_cast<float>(7 * i));
    ASSERT_NEAR(ends[0].theta[i], expected, 2e-5) << i;
  }
}

TEST_P(CodedRounds, WithoutFeedbackSomethingIsMissing) {
  if (GetParam().residual == Residual::local || GetParam().kind <= CodecKind::fp16) return;
  const Config plain = coded(two_tiers(1, 2, Strategy::periodic, 4), {});
  const Config config = coded(plain, codec(0));
  const auto expected = train(plain), ends = train(config);
  expect_settled(ends, config);
  EXPECT_GT(distance(ends[0].theta, expected[0].theta), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Each, CodedRounds,
                         testing::Values(Coding{"bf16", CodecKind::bf16, Residual::buffer},
                                         Coding{"fp16", CodecKind::fp16, Residual::buffer},
                                         Coding{"int8", CodecKind::int8, Residual::buffer},
                                         Coding{"int4", CodecKind::int4, Residual::buffer},
                                         Coding{"int4_local", CodecKind::int4, Residual::local},
                                         Coding{"int2", CodecKind::int2, Residual::buffer},
                                         Coding{"sign", CodecKind::sign, Residual::buffer},
                                         Coding{"sign_local", CodecKind::sign, Residual::local},
                                         Coding{"levels", CodecKind::levels, Residual::buffer},
                                         Coding{"top_k", CodecKind::top_k, Residual::buffer},
                                         Coding{"top_k_local", CodecKind::top_k, Residual::local}),
                         [](const auto& info) { return std::string(info.param.name); });

// A node whose training ends right after a round still brings what its codes left out.
TEST(CodedEnd, TheLastContributionBringsWhatWasLeftOut) {
  const CodecOptions codecs[] = {codec_of(CodecKind::top_k, Residual::local),
                                 codec_of(CodecKind::sign, Residual::buffer)};
  for (const CodecOptions& codec : codecs) {
    const Config plain = coded(two_tiers(1, 2, Strategy::periodic, 4), {});
    const Config config = coded(plain, codec);
    const auto expected = train(plain, 8), ends = train(config, 8);
    expect_settled(ends, config);
    EXPECT_LT(distance(ends[0].theta, expected[0].theta), 1e-6);
  }
}

}  // namespace
}  // namespace hybridsync
