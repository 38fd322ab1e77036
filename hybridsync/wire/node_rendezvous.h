// How the ranks of one node find each other: rank 0 listens, the others join, all learn who is who.
#pragma once

#include <string>
#include <vector>

#include "hybridsync/wire/file_descriptor.h"
#include "hybridsync/wire/local_socket.h"
#include "hybridsync/wire/wait.h"

namespace hybridsync {

struct NodeSeat {
  std::string run_id;
  int node = 0;
  int rank = 0;
  int size = 1;
};

struct NodePeer {
  FileDescriptor pidfd;
  int pid = 0;
};

struct NodeLinks {
  std::vector<NodePeer> peers;  // by rank, this one included
  std::vector<LocalSocket>
      connections;  // by rank; on rank 0 to all others, elsewhere only to rank 0
};

// Blocks until all ranks are there; fails as make_node_memory says.
NodeLinks meet_in_node(const NodeSeat& seat, const Patience& patience);

// "rank 2 of node 0".
std::string rank_name(int node, int rank);
// "rank 2 of node 0 is gone (pid 123): what".
std::string gone_sentence(int node, int rank, int pid, const std::string& what);
// "ranks 1 and 2 of node 0 did not come to what within 60 s".
std::string late_sentence(int node, const std::vector<int>& ranks, const std::string& what,
                          const Patience& patience);

}  // namespace hybridsync
