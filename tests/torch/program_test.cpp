#include "hybridsync/torch/program.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <sstream>
#include <thread>

#include "hybridsync/config/error.h"
#include "hybridsync/config/load.h"
#include "hybridsync/data/global_order.h"
#include "hybridsync/observe/run_data.h"
#include "hybridsync/torch/models/model.h"
#include "hybridsync/torch/run_log.h"
#include "hybridsync/torch/state_dict.h"
#include "tests/data/files.h"

namespace hybridsync {
namespace {

using testing::HasSubstr;

// Images of 8 x 8 whose class shows as a bright row, under noise.
void write_images(const Folder& folder, const std::string& part, int count, uint64_t seed) {
  SplitMix64 random(seed);
  const auto high = static_cast<uint8_t>(count >> 8);
  const auto low = static_cast<uint8_t>(count & 255);
  std::vector<uint8_t> images = {0, 0, 8, 3, 0, 0, high, low, 0, 0, 0, 8, 0, 0, 0, 8};
  std::vector<uint8_t> labels = {0, 0, 8, 1, 0, 0, high, low};
  for (int i = 0; i < count; ++i) {
    const auto label = random.below(4);
    labels.push_back(static_cast<uint8_t>(label));
    for (uint64_t pixel = 0; pixel < 64; ++pixel) {
      images.push_back(static_cast<uint8_t>(random.below(100) + (pixel / 16 == label ? 100 : 0)));
    }
  }
  folder.write(part + "-images-idx3-ubyte", images);
  folder.write(part + "-labels-idx1-ubyte", labels);
}

class ProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    write_images(folder_, "train", 400, 1);
    write_images(folder_, "t10k", 300, 2);  // more than one batch of an evaluation
    config_ = parse("", "somewhere/tiny.toml");
    config_.train.data = folder_.path();
    config_.train.micro_batch = 8;
    config_.train.steps = 30;
    config_.train.device = "cpu";
    config_.accumulate.steps = 2;
    config_.record.folder = folder_.file("runs");
    config_.record.name = "first";
  }

  RunSummary train() {
    std::ostringstream out;
    return run_training(config_, Environment{}, out);
  }

  std::string bytes_of(const std::string& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const Folder folder_;
  Config config_;
};

TEST_F(ProgramTest, LearnsAndRecordsWhatItDid) {
  config_.train.evaluate_every = 10;
  const RunSummary summary = train();
  EXPECT_EQ(summary.name, "tiny");
  EXPECT_EQ(summary.seed, 1u);
  EXPECT_EQ(summary.steps, 30);
  EXPECT_EQ(summary.samples, 30 * 2 * 8);
  EXPECT_GT(summary.final_accuracy, 0.9);
  EXPECT_GT(summary.seconds, 0);
  EXPECT_GT(summary.utilisation, 0);
  EXPECT_LE(summary.utilisation, 1);
  EXPECT_EQ(summary.bytes_sent_slow, 0);
  EXPECT_EQ(summary.folder, folder_.file("runs/first"));

  const RunData run = read_run(summary.folder);
  EXPECT_TRUE(run.finished);
  EXPECT_THAT(run.notes, testing::IsEmpty());
  ASSERT_EQ(run.steps.size(), 30u);
  EXPECT_LT(run.steps.back().loss, run.steps.front().loss / 2);
  ASSERT_EQ(run.evaluations.size(), 3u);
  EXPECT_EQ(run.evaluations[0].step, 10);
  EXPECT_EQ(run.evaluations[2].step, 30);
  EXPECT_EQ(run.evaluations[2].accuracy, summary.final_accuracy);
  EXPECT_EQ(to_toml(parse(run.config, "config.toml")), to_toml(config_));
}

TEST_F(ProgramTest, TheScoreIsThatOfTheSavedFile) {
  const RunSummary summary = train();
  const auto state = load_state_dict(summary.folder + "/model.pt");
  const auto data = make_dataset(config_.train.data);
  const auto net = make_model(config_.train, data->shape());
  const torch::NoGradGuard no_grad;
  for (auto& item : net->named_parameters()) item.value().copy_(state.at(item.key()));
  for (auto& item : net->named_buffers()) item.value().copy_(state.at(item.key()));
  net->eval();
  std::vector<int64_t> all(300);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  const Batch batch = data->batch(Part::held_out, all);
  const auto logits = net->forward(batch.data);
  EXPECT_NEAR(cross_entropy(logits, batch.target).item<double>(), summary.final_loss, 1e-5);
  EXPECT_NEAR(accuracy(logits, batch.target), summary.final_accuracy, 1e-9);
  EXPECT_EQ(state.at("block1.1.num_batches_tracked").item<int64_t>() > 0, true);
}

TEST_F(ProgramTest, OneSeedGivesTheSameBits) {
  const std::string first = bytes_of(train().folder + "/model.pt");
  config_.record.name = "second";
  config_.train.evaluate_every = 7;  // looking changes nothing
  EXPECT_EQ(bytes_of(train().folder + "/model.pt"), first);
  config_.record.name = "third";
  config_.train.seed = 2;
  EXPECT_NE(bytes_of(train().folder + "/model.pt"), first);
}

TEST_F(ProgramTest, EvaluatesAPart) {
  config_.train.evaluate_samples = 100;
  const double of_some = train().final_loss;
  config_.record.name = "second";
  config_.train.evaluate_samples = 1000;  // more than there are
  const double of_more = train().final_loss;
  config_.record.name = "third";
  config_.train.evaluate_samples = 0;
  const double of_all = train().final_loss;
  EXPECT_NE(of_some, of_all);
  EXPECT_NEAR(of_some, of_all, of_all);
  EXPECT_EQ(of_more, of_all);
}

// What config_ trains in one run of `steps` must be the same as in two, the second from the first.
// Every step sees the same samples: the micro-batch is all of them.
class StartFrom : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    config_.train.micro_batch = 400;
    config_.accumulate.steps = 1;
    config_.train.steps = 2;
  }

  std::string bytes_of_two_runs() {
    config_.record.name = "start";
    config_.train.start_from = "";
    const std::string start = train().folder;
    config_.record.name = "rest";
    config_.train.start_from = start;
    return bytes_of(train().folder + "/model.pt");
  }

  std::string bytes_of_one_run() {
    config_.record.name = "whole";
    config_.train.steps = 4;
    return bytes_of(train().folder + "/model.pt");
  }

  std::string error() {
    try {
      train();
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "no error";
  }
};

TEST_F(StartFrom, TheFirstLossIsThatOfTheSavedWeights) {
  bytes_of_two_runs();
  const double first = read_run(folder_.file("runs/rest")).steps.front().loss;
  config_.record.name = "on";
  config_.train.start_from = "";
  config_.train.steps = 3;
  const auto whole = read_run(train().folder).steps;
  EXPECT_NEAR(first, whole.back().loss, 1e-5);
  EXPECT_GT(whole.front().loss, 1.2 * first);
}

TEST_F(StartFrom, TakesTheOptimizersState) {
  for (const char* optimizer : {"sgd", "adam", "adamw"}) {
    config_.train.optimizer = optimizer;
    config_.record.folder = folder_.file(std::string("runs-") + optimizer);
    config_.train.lr = 0.01;
    config_.train.steps = 2;
    bytes_of_two_runs();
    const auto rest = load_state_dict(config_.record.folder + "/rest/optimizer.pt");
    config_.train.start_from = "";
    bytes_of_one_run();
    const auto whole = load_state_dict(config_.record.folder + "/whole/optimizer.pt");
    ASSERT_EQ(rest.size(), whole.size());
    ASSERT_FALSE(rest.empty());
    for (const auto& [name, tensor] : rest) {
      EXPECT_TRUE(name.starts_with(std::string(optimizer) + "/")) << name;
      EXPECT_TRUE(torch::allclose(tensor.to(torch::kFloat64), whole.at(name).to(torch::kFloat64),
                                  1e-2, 1e-4))
          << name;
      if (name.find("/step/") != std::string::npos) EXPECT_EQ(tensor.item<int64_t>(), 4) << name;
    }
  }
}

TEST_F(StartFrom, NamesWhatDoesNotFit) {
  const std::string start = train().folder;
  config_.record.name = "second";
  config_.train.start_from = folder_.file("nowhere");
  EXPECT_THAT(error(), AllOf(HasSubstr("train.start_from"), HasSubstr("nowhere"),
                             HasSubstr("there is no such folder")));
  config_.train.start_from = folder_.path();
  EXPECT_THAT(error(), AllOf(HasSubstr("model.pt is not there"), HasSubstr("finished run")));
  config_.train.start_from = start;
  config_.train.optimizer = "adam";
  EXPECT_THAT(error(), AllOf(HasSubstr("optimizer.pt holds no state of adam"),
                             HasSubstr("train.optimizer")));
  config_.train.optimizer = "sgd";
  std::ofstream(start + "/optimizer.pt") << "nonsense";
  EXPECT_THAT(error(), HasSubstr("optimizer.pt cannot be read"));
}

TEST_F(StartFrom, RefusesAnotherModel) {
  const std::string start = train().folder;
  config_.record.name = "second";
  config_.train.start_from = start;
  std::string text(20000, 'a');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 7);
  std::ofstream(folder_.file("text.txt")) << text;
  config_.train.data = folder_.file("text.txt");
  config_.train.model = "char-gpt";
  config_.train.micro_batch = 2;
  EXPECT_THAT(error(), AllOf(HasSubstr(start + "/model.pt has no '"), HasSubstr("train.model")));
}

TEST_F(ProgramTest, EvaluationIsNotTrainingTime) {
  config_.train.micro_batch = 1;
  config_.accumulate.steps = 1;
  config_.train.evaluate_every = 1;  // 300 images after each one
  const auto start = std::chrono::steady_clock::now();
  const RunSummary summary = train();
  const std::chrono::duration<double> all = std::chrono::steady_clock::now() - start;
  EXPECT_LT(summary.seconds, all.count() / 2);
  double compute = 0;
  for (const StepRecord& record : read_run(summary.folder).steps) compute += record.compute_seconds;
  EXPECT_LT(compute, all.count() / 2);
}

TEST_F(ProgramTest, ASignalInterruptsIt) {
  config_.train.steps = 1'000'000'000;
  const std::string metrics = folder_.file("runs/first/metrics.jsonl");
  std::thread user([&] {
    for (int i = 0; i < 6000; ++i) {  // at most a minute
      std::error_code none;
      if (std::filesystem::file_size(metrics, none) > 0 && !none) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    kill(getpid(), SIGTERM);
  });
  EXPECT_THROW(train(), Interrupted);
  user.join();
  const RunData run = read_run(folder_.file("runs/first"));
  ASSERT_EQ(run.events.size(), 1u);
  EXPECT_EQ(run.events[0].kind, "interrupted");
  EXPECT_FALSE(run.finished);
}

TEST_F(ProgramTest, NamesWhatItCannotDo) {
  const auto error = [&](auto change) -> std::string {
    Config before = config_;
    change(config_.train);
    try {
      train();
    } catch (const ConfigError& e) {
      config_ = before;
      return e.what();
    }
    config_ = before;
    return "no error";
  };
  EXPECT_THAT(error([](auto& t) { t.optimizer = "lion"; }), HasSubstr("\"lion\""));
  EXPECT_THAT(error([](auto& t) { t.device = "cuda:99"; }), HasSubstr("cuda:99"));
  EXPECT_THAT(error([](auto& t) { t.device = "gpu"; }), HasSubstr("gpu"));
  EXPECT_THAT(error([](auto& t) { t.micro_batch = 401; }), HasSubstr("401"));
}

TEST(RunFolder, FollowsEnvironmentNameRunAndTime) {
  Config config;
  config.source = "here/hybrid.toml";
  config.record.folder = "runs";
  Environment environment;
  EXPECT_THAT(run_folder(config, environment), testing::MatchesRegex("runs/hybrid-.*"));
  environment.run_id = "4f";
  EXPECT_EQ(run_folder(config, environment), "runs/hybrid-4f");
  config.record.name = "mine";
  EXPECT_EQ(run_folder(config, environment), "runs/mine");
  environment.run_folder = "elsewhere";
  EXPECT_EQ(run_folder(config, environment), "elsewhere");
}

}  // namespace
}  // namespace hybridsync
