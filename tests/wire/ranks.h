// Runs one function per rank of a node, as threads of the test or as processes of their own.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace hybridsync {

enum class RanksAs { threads, processes };

// Returns what was wrong, empty if nothing. Must not use the assertions of GoogleTest, which do not
// cross processes. An exception counts as "threw: ...", a signal as "signal N".
using RankBody = std::function<std::string(int rank)>;

// What each rank returned, in rank order.
std::vector<std::string> run_ranks(RanksAs as, int size, const RankBody& body);

// Whether processes can be forked here: a sanitizer for threads does not survive it.
bool can_fork();

// A run id that no other test, nor another run of this one, uses at the same time.
std::string fresh_run_id();

}  // namespace hybridsync
