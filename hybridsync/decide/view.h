// Who takes part, and who owns what, under one epoch number. The coordinator alone makes views.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hybridsync/decide/fragments.h"

namespace hybridsync {

// Of a view; messages of another epoch are ignored (fencing). 0: before the first view.
using Epoch = uint64_t;

// A process: a node that was started again is a new incarnation.
struct Process {
  int node = -1;
  uint32_t incarnation = 0;
  static void visit(auto& s, auto&& f) { f(s.node, s.incarnation); }
  bool operator==(const Process&) const = default;
};

struct View {
  Epoch epoch = 0;
  std::vector<Process> members;  // ascending by node
  std::vector<int> owners;       // by fragment: a member's node

  const Process* find(int node) const {
    const auto at = std::find_if(members.begin(), members.end(),
                                 [&](const Process& p) { return p.node == node; });
    return at == members.end() ? nullptr : &*at;
  }
  bool has(const Process& process) const {
    const Process* found = find(process.node);
    return found && *found == process;
  }
  static void visit(auto& s, auto&& f) { f(s.epoch, s.members, s.owners); }
  bool operator==(const View&) const = default;
};

// Of a new run: everybody that the table names, each fragment with the owner that it names.
View first_view(const FragmentTable& table);

}  // namespace hybridsync
