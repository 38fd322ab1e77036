// The momentum of SGD where it is at the senders: each node sums up that of its own gradients, and
// what arrives is the optimizer's whole step. Since it is linear, the weighted mean of the nodes'
// is that of the mean gradient.
#pragma once

namespace hybridsync {

struct SenderMomentum {
  double factor = 0;
  bool nesterov = false;
};

}  // namespace hybridsync
