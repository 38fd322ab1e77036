// What a run leaves for another to begin from, train.start_from: weights, buffers and the
// optimizer's state.
#pragma once

#include <torch/torch.h>

#include <string>

namespace hybridsync {

// model.pt (state_dict.h), and optimizer.pt with tensors by names such as
// "adamw/exp_avg/head.weight": the optimizer, what of its state, of which parameter. Each is either
// the old file or all of the new one. Throws std::runtime_error that names file and reason.
void save_start_state(const torch::nn::Module& model, torch::optim::Optimizer& optimizer,
                      const std::string& folder);

// Puts what save_start_state() left in `folder` into model and optimizer, on the devices that they
// are on. The optimizer keeps its own learning rate and other options. Throws ConfigError that
// names the key, the file and the remedy when the folder or a file is not there or was made by
// another model or optimizer; then some of it may have been put in already.
void load_start_state(torch::nn::Module& model, torch::optim::Optimizer& optimizer,
                      const std::string& folder);

}  // namespace hybridsync
