// Messages and seats in words, for traces.
#pragma once

#include <string>

#include "hybridsync/decide/seat.h"

namespace hybridsync {

// For example "RESULT 3 {1:2, 2:2} from node 0 (epoch 1)".
std::string in_words(const Message& message);
// For example "epoch 2 ready, version 3, outbox {4 on 3}".
std::string in_words(const Seat& seat);

}  // namespace hybridsync
