// Whether all ranks have the same model, and the same start.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "hybridsync/sync/wires.h"

namespace torch::nn {
class Module;
}

namespace hybridsync {

// Compares names, order, shapes, types, strides and requires_grad of all parameters and buffers,
// and `rules` (what else must be equal, such as the configuration), between all ranks of the run.
// Throws ConfigError on all of them with the first difference. Collective.
void require_same_model(torch::nn::Module& model, const std::vector<std::string>& rules,
                        Rendezvous& rendezvous);

// Gives all ranks the parameters and buffers of rank 0. Sends nothing when they are equal already.
// Collective.
void broadcast_from_first(torch::nn::Module& model, int rank, Rendezvous& rendezvous);

// XXH3 of all parameters and buffers in registration order.
uint64_t hash_of(torch::nn::Module& model);

}  // namespace hybridsync
