// Where the ranks of a run find each other before they can talk: one small server in the
// launcher, asked by every rank at its start and never again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hybridsync/wire/exchange.h"
#include "hybridsync/wire/wait.h"

namespace hybridsync {

// Serves all_gathers among `world_size` ranks of run `run_id` on a loopback port of the system's
// choice, from a thread of its own, until destroyed. A rank of another run, a second process with a
// rank that is taken, and a rank out of range are refused with a sentence that reaches that rank.
class RendezvousHost {
 public:
  RendezvousHost(int world_size, std::string run_id);
  ~RendezvousHost();
  std::string address() const;  // host:port

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// A rank's end. With world_size 1 it needs no host: the gather is the identity.
class Rendezvous {
 public:
  Rendezvous(const std::string& address, const std::string& run_id, int rank, int world_size,
             Patience patience);
  ~Rendezvous();

  // Every rank's bytes in rank order; returns when all ranks called with this name. Throws RunEnded
  // past the limit ("ranks 2 and 3 did not come to 'model' within 60 s"), ConfigError when refused.
  std::vector<Bytes> all_gather(const std::string& name, Bytes mine);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hybridsync
