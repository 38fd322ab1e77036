// Models, data sets and state dicts by value, the last as Python reads them.
#include <gmock/gmock.h>

#include <cstdio>
#include <memory>
#include <sstream>

#include "hybridsync/config/error.h"
#include "hybridsync/torch/dataset.h"
#include "hybridsync/torch/models/model.h"
#include "hybridsync/torch/state_dict.h"
#include "tests/data/files.h"

namespace hybridsync {
namespace {

using testing::HasSubstr;

const SampleShape kImages{.classes = 10, .rows = 28, .columns = 28};
const SampleShape kText{.text = true, .classes = 70, .context = 64};

// Threads of one test would only wait for those of another.
const bool kOneThread = (at::set_num_threads(1), true);

std::shared_ptr<Model> model(const std::string& name, uint64_t seed = 1) {
  TrainConfig config;
  config.model = name;
  config.seed = seed;
  return make_model(config, name == "cnn" ? kImages : kText);
}

int64_t size_of(const Model& model) {
  int64_t count = 0;
  for (const auto& parameter : model.parameters()) count += parameter.numel();
  return count;
}

bool equal(const Model& a, const Model& b) {
  const auto left = a.parameters();
  const auto right = b.parameters();
  return std::ranges::equal(left, right, [](auto& x, auto& y) { return torch::equal(x, y); });
}

torch::Tensor random_input(const std::string& name) {
  return name == "cnn" ? torch::randn({8, 1, 28, 28}) : torch::randint(70, {8, 64}, torch::kInt64);
}

TEST(Models, HaveTheDocumentedSizes) {
  EXPECT_EQ(size_of(*model("cnn")), 206970);
  EXPECT_EQ(size_of(*model("char-gpt")), 208640);
}

class EachModel : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, EachModel, testing::Values("cnn", "char-gpt"),
                         [](auto& info) { return info.index == 0 ? "cnn" : "char_gpt"; });

TEST_P(EachModel, DependsOnTheSeedAlone) {
  const auto first = model(GetParam());
  torch::rand({3});
  EXPECT_TRUE(equal(*first, *model(GetParam())));
  EXPECT_FALSE(equal(*first, *model(GetParam(), 2)));
}

TEST_P(EachModel, StartsNearAUniformGuessAndLearnsABatchByHeart) {
  const auto net = model(GetParam());
  const auto input = random_input(GetParam());
  const bool text = input.dim() == 2;
  const int64_t classes = text ? kText.classes : kImages.classes;
  const auto target = text ? input.roll(1, 1) : torch::arange(8) % classes;
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(0.01));
  EXPECT_NEAR(cross_entropy(net->forward(input), target).item<double>(),
              std::log(static_cast<double>(classes)), 0.5);
  for (int i = 0; i < 60; ++i) {
    optimizer.zero_grad();
    cross_entropy(net->forward(input), target).backward();
    optimizer.step();
  }
  EXPECT_GT(accuracy(net->forward(input), target), text ? 0.1 : 0.99);
}

TEST_P(EachModel, GivesEveryParameterAGradient) {
  const auto net = model(GetParam());
  net->forward(random_input(GetParam())).pow(2).sum().backward();
  for (const auto& item : net->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_GT(item.value().grad().abs().max().item<double>(), 0) << item.key();
  }
}

TEST(CharGpt, SeesNoLaterCharacter) {
  const auto net = model("char-gpt");
  auto input = random_input("char-gpt");
  const auto before = net->forward(input);
  input = input.clone();
  input.select(1, 40).add_(1).remainder_(70);
  const auto changed = (net->forward(input) - before).abs().amax({0, 2});
  EXPECT_EQ(changed.narrow(0, 0, 40).max().item<double>(), 0);
  EXPECT_GT(changed.narrow(0, 40, 24).min().item<double>(), 0);
}

TEST(Models, RefuseDataThatTheyDoNotFit) {
  TrainConfig config;
  config.model = "cnn";
  EXPECT_THROW(make_model(config, kText), ConfigError);
  config.model = "char-gpt";
  EXPECT_THROW(make_model(config, kImages), ConfigError);
  config.model = "cn";
  EXPECT_THROW(make_model(config, kImages), ConfigError);
}

TEST(Loss, IsTheMeanAndAccuracyTheFractionRight) {
  const auto logits = torch::tensor({{0.0, 0.0}, {std::log(3.0), 0.0}});
  const auto target = torch::tensor({1, 0}, torch::kInt64);
  EXPECT_NEAR(cross_entropy(logits, target).item<double>(),
              (std::log(2.0) + std::log(4.0 / 3.0)) / 2, 1e-7);
  EXPECT_EQ(accuracy(torch::tensor({{0.0, 1.0}, {0.0, 1.0}}), target), 0.5);
}

TEST(Dataset, NormalisesImagesByTheTrainingPart) {
  const Folder folder;
  folder.write("train-images-idx3-ubyte", idx_bytes({3, 4, 4}));
  folder.write("train-labels-idx1-ubyte", idx_bytes({3}, 5));
  folder.write("t10k-images-idx3-ubyte", idx_bytes({2, 4, 4}, 100));
  folder.write("t10k-labels-idx1-ubyte", idx_bytes({2}, 1));
  const auto data = make_dataset(folder.path());
  EXPECT_EQ(data->shape().classes, 8);
  EXPECT_EQ(data->count(Part::train), 3);
  EXPECT_EQ(data->count(Part::held_out), 2);

  const int64_t all[] = {0, 1, 2};
  const auto whole = data->batch(Part::train, all).data;
  EXPECT_NEAR(whole.mean().item<double>(), 0, 1e-6);
  EXPECT_NEAR(whole.var(false).item<double>(), 1, 1e-6);

  const int64_t picked[] = {2, 0};
  const Batch batch = data->batch(Part::train, picked);
  EXPECT_EQ(batch.data.sizes(), torch::IntArrayRef({2, 1, 4, 4}));
  EXPECT_TRUE(torch::equal(batch.data[0], whole[2]));
  EXPECT_TRUE(torch::equal(batch.data[1], whole[0]));
  EXPECT_TRUE(torch::equal(batch.target, torch::tensor({7, 5}, torch::kInt64)));
  const int64_t last[] = {1};
  EXPECT_EQ(data->batch(Part::held_out, last).target.item<int64_t>(), 2);
}

TEST(Dataset, TargetsOfATextAreTheNextCharacters) {
  const Folder folder;
  std::vector<uint8_t> text;
  for (int i = 0; i < 2000; ++i) text.push_back(static_cast<uint8_t>('A' + i % 31));
  const auto data = make_dataset(folder.write("text", text));
  EXPECT_EQ(data->shape().classes, 31);
  EXPECT_EQ(data->count(Part::train), 1799 / 64);
  EXPECT_EQ(data->count(Part::held_out), 199 / 64);
  const int64_t picked[] = {3, 0};
  const Batch batch = data->batch(Part::train, picked);
  const auto first = torch::arange(64);
  EXPECT_TRUE(torch::equal(batch.data[0], (first + 3 * 64) % 31));
  EXPECT_TRUE(torch::equal(batch.target[0], (first + 3 * 64 + 1) % 31));
  EXPECT_TRUE(torch::equal(batch.data[1], first % 31));
  EXPECT_THROW(make_dataset(folder.write("short", {'a', 'b'})), ConfigError);
}

TEST(StateDict, ComesBackBitForBit) {
  const Folder folder;
  const auto net = model("cnn");
  net->forward(random_input("cnn"));  // moves the running statistics
  save_state_dict(*net, folder.file("model.pt"));
  const auto state = load_state_dict(folder.file("model.pt"));
  EXPECT_EQ(state.size(), net->named_parameters().size() + net->named_buffers().size());
  for (const auto& item : net->named_parameters()) {
    EXPECT_TRUE(torch::equal(state.at(item.key()), item.value())) << item.key();
  }
  for (const auto& item : net->named_buffers()) {
    EXPECT_TRUE(torch::equal(state.at(item.key()), item.value())) << item.key();
  }
  EXPECT_FALSE(std::filesystem::exists(folder.file("model.pt.part")));
}

TEST(StateDict, SavesTheSameBytesForTheSameWeights) {
  const Folder folder;
  const auto bytes = [&](const Model& net, const char* name) {
    save_state_dict(net, folder.file(name));
    std::ifstream file(folder.file(name), std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  const std::string first = bytes(*model("cnn"), "a");
  EXPECT_EQ(bytes(*model("cnn"), "b"), first);
  EXPECT_NE(bytes(*model("cnn", 2), "c"), first);
}

TEST(StateDict, SavesOnlyWhatAViewShows) {
  const Folder folder;
  torch::nn::Linear net(2, 2);
  const auto flat = torch::zeros(100'000);
  net->weight.set_data(flat.narrow(0, 50, 4).view({2, 2}));
  save_state_dict(*net, folder.file("view.pt"));
  EXPECT_LT(std::filesystem::file_size(folder.file("view.pt")), 10'000u);
}

TEST(StateDict, AFolderThatIsNotThereIsNamed) {
  try {
    save_state_dict(*model("cnn"), "/nowhere/model.pt");
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("/nowhere/model.pt"));
  }
}

TEST(StateDict, OpensInPythonWithDefaultArguments) {
  if (std::string(TORCH_PYTHON).empty()) GTEST_SKIP() << "this torch came without a Python";
  const Folder folder;
  const auto net = model("cnn");
  save_state_dict(*net, folder.file("model.pt"));
  const std::string command =
      std::string(TORCH_PYTHON) + " " + STATE_DICT_SCRIPT + " " + folder.file("model.pt");
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string output;
  for (int c; (c = std::fgetc(pipe.get())) != EOF;) output += static_cast<char>(c);
  std::istringstream lines(output);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_THAT(line, HasSubstr("block1.0.weight torch.float32 [16, 1, 3, 3] "));
  EXPECT_NEAR(std::stod(line.substr(line.rfind(' '))),
              net->named_parameters()["block1.0.weight"].to(torch::kFloat64).sum().item<double>(),
              1e-9);
  EXPECT_THAT(output, HasSubstr("block1.1.running_var torch.float32 [16] 16.0\n"));
  EXPECT_THAT(output, HasSubstr("block2.1.num_batches_tracked torch.int64 [] 0.0\n"));
}

}  // namespace
}  // namespace hybridsync
