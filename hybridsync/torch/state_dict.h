// A model's weights in a file that Python reads: torch.load(path) gives a dict of name -> tensor.
#pragma once

#include <torch/torch.h>

#include <map>
#include <string>

namespace hybridsync {

// Parameters and buffers by name, on the CPU. Written aside, synced and renamed, so that `path`
// holds either the old file or all of the new one. The same tensors give the same bytes. Throws
// std::runtime_error that names the file and the reason.
void save_state_dict(const torch::nn::Module& model, const std::string& path);

// The same for any tensors by name.
void save_tensors(const std::map<std::string, torch::Tensor>& tensors, const std::string& path);

// What one of these wrote. Throws c10::Error on a file that they did not write.
std::map<std::string, torch::Tensor> load_state_dict(const std::string& path);

}  // namespace hybridsync
