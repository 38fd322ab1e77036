#include "hybridsync/torch/start_state.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "hybridsync/config/error.h"
#include "hybridsync/torch/state_dict.h"

namespace hybridsync {
namespace {

using Tensors = std::map<std::string, torch::Tensor>;

constexpr const char* kModelFile = "model.pt";
constexpr const char* kOptimizerFile = "optimizer.pt";

// One parameter's state in an optimizer as tensors by name, and back.
struct Kind {
  std::string name;
  std::vector<std::string> fields;
  std::function<Tensors(const torch::optim::OptimizerParamState&)> out;
  std::function<std::unique_ptr<torch::optim::OptimizerParamState>(const Tensors&)> in;
};

Kind sgd_kind() {
  using State = torch::optim::SGDParamState;
  return {"sgd",
          {"momentum_buffer"},
          [](const torch::optim::OptimizerParamState& state) -> Tensors {
            return {{"momentum_buffer", static_cast<const State&>(state).momentum_buffer()}};
          },
          [](const Tensors& tensors) {
            auto state = std::make_unique<State>();
            state->momentum_buffer(tensors.at("momentum_buffer"));
            return state;
          }};
}

template <class State>
Kind adam_kind(const std::string& name) {
  return {name,
          {"step", "exp_avg", "exp_avg_sq"},
          [](const torch::optim::OptimizerParamState& state) -> Tensors {
            const auto& adam = static_cast<const State&>(state);
            return {{"step", torch::tensor(adam.step(), torch::kInt64)},
                    {"exp_avg", adam.exp_avg()},
                    {"exp_avg_sq", adam.exp_avg_sq()}};
          },
          [](const Tensors& tensors) {
            auto state = std::make_unique<State>();
            state->step(tensors.at("step").template item<int64_t>());
            state->exp_avg(tensors.at("exp_avg"));
            state->exp_avg_sq(tensors.at("exp_avg_sq"));
            return state;
          }};
}

Kind kind_of(const torch::optim::Optimizer& optimizer) {
  using namespace torch::optim;
  if (dynamic_cast<const SGD*>(&optimizer)) return sgd_kind();
  if (dynamic_cast<const Adam*>(&optimizer)) return adam_kind<AdamParamState>("adam");
  if (dynamic_cast<const AdamW*>(&optimizer)) return adam_kind<AdamWParamState>("adamw");
  throw ConfigError("train.optimizer: its state can neither be saved nor loaded");
}

std::string shape_text(const torch::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.sizes();
  return text.str();
}

// The folder of train.start_from, and what can be wrong with it.
class Start {
 public:
  explicit Start(std::string folder) : folder_(std::move(folder)) {
    if (!std::filesystem::is_directory(folder_))
      fail("there is no such folder; give the folder of a finished run, or leave the key out");
  }

  Tensors read(const char* file) const {
    const std::string path = folder_ + "/" + file;
    if (!std::filesystem::is_regular_file(path)) {
      fail(path +
           " is not there: the run has not finished, or is of an older version; give the "
           "folder of a finished run");
    }
    try {
      return load_state_dict(path);
    } catch (const c10::Error&) {
      fail(path + " cannot be read; give the folder of a finished run");
    }
  }

  [[noreturn]] void fail(const std::string& complaint) const {
    throw ConfigError("train.start_from = \"" + folder_ + "\": " + complaint);
  }

  [[noreturn]] void other_model(const char* file, const std::string& what) const {
    fail(folder_ + "/" + file + " " + what + "; give a run of the same train.model and train.data");
  }

  void same_shape(const char* file, const std::string& name, const torch::Tensor& saved,
                  const torch::Tensor& ours) const {
    if (saved.sizes() == ours.sizes()) return;
    other_model(file, "has '" + name + "' in the shape " + shape_text(saved) +
                          ", but this model's is " + shape_text(ours));
  }

 private:
  std::string folder_;
};

void load_weights(torch::nn::Module& model, const Start& start) {
  const torch::NoGradGuard no_grad;
  Tensors saved = start.read(kModelFile);
  const auto take = [&](const auto& named) {
    for (auto& item : named) {
      if (!item.value().defined()) continue;
      const auto found = saved.find(item.key());
      if (found == saved.end()) start.other_model(kModelFile, "has no '" + item.key() + "'");
      start.same_shape(kModelFile, item.key(), found->second, item.value());
      item.value().copy_(found->second);
      saved.erase(found);
    }
  };
  take(model.named_parameters());
  take(model.named_buffers());
  if (saved.empty()) return;
  start.other_model(kModelFile, "has '" + saved.begin()->first + "', which this model has not");
}

// Moves one parameter's state out of `saved`; all of it or nothing is there.
Tensors take_state(Tensors& saved, const Kind& kind, const std::string& parameter,
                   const Start& start) {
  Tensors found;
  for (const std::string& field : kind.fields) {
    auto node = saved.extract(kind.name + "/" + field + "/" + parameter);
    if (node) found[field] = node.mapped();
  }
  if (!found.empty() && found.size() < kind.fields.size())
    start.other_model(kOptimizerFile, "has only a part of the state of '" + parameter + "'");
  return found;
}

void load_optimizer(torch::nn::Module& model, torch::optim::Optimizer& optimizer,
                    const Start& start) {
  Tensors saved = start.read(kOptimizerFile);
  const Kind kind = kind_of(optimizer);
  const bool none = saved.empty() && kind.name != "sgd";
  if (none || (!saved.empty() && !saved.begin()->first.starts_with(kind.name + "/"))) {
    start.fail("its " + std::string(kOptimizerFile) + " holds no state of " + kind.name +
               "; give a run with the same train.optimizer");
  }
  for (const auto& item : model.named_parameters()) {
    Tensors tensors = take_state(saved, kind, item.key(), start);
    if (tensors.empty()) continue;
    for (auto& [field, tensor] : tensors) {
      if (field == "step") continue;
      start.same_shape(kOptimizerFile, item.key(), tensor, item.value());
      tensor = tensor.to(item.value().device());
    }
    optimizer.state()[item.value().unsafeGetTensorImpl()] = kind.in(tensors);
  }
  if (saved.empty()) return;
  start.other_model(kOptimizerFile, "has '" + saved.begin()->first + "', which this model has not");
}

}  // namespace

void save_start_state(const torch::nn::Module& model, torch::optim::Optimizer& optimizer,
                      const std::string& folder) {
  save_state_dict(model, folder + "/" + kModelFile);
  const Kind kind = kind_of(optimizer);
  Tensors tensors;
  for (const auto& item : model.named_parameters()) {
    const auto found = optimizer.state().find(item.value().unsafeGetTensorImpl());
    if (found == optimizer.state().end()) continue;
    for (const auto& [field, tensor] : kind.out(*found->second)) {
      if (tensor.defined()) tensors[kind.name + "/" + field + "/" + item.key()] = tensor;
    }
  }
  save_tensors(tensors, folder + "/" + kOptimizerFile);
}

void load_start_state(torch::nn::Module& model, torch::optim::Optimizer& optimizer,
                      const std::string& folder) {
  const Start start(folder);
  load_weights(model, start);
  load_optimizer(model, optimizer, start);
}

}  // namespace hybridsync
