// The owner of a fragment collects one contribution per member and publishes the result: a machine
// without sockets, threads or clock. This is the synchronous part: a round waits for every member,
// for ever if need be.
//
// Use: on(contribution) for everything that arrives; when it answers Close, do the arithmetic on
// those contributions and call publish(), which moves to the next version and gives the message for
// all members.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "hybridsync/decide/messages.h"

namespace hybridsync {

// The round stays open: for whom, in a sentence.
struct WaitFor {
  std::vector<int> missing;
  std::string why;
};

// The round closes now, with these contributions in member order.
struct Close {
  Version version = 0;  // of the result
  std::vector<Contribution> contributions;
  std::string why;
};

// The contribution is not taken, and the run cannot go on with the member that sent it.
struct Disagree {
  int node = -1;
  std::string why;
};

using OwnerAction = std::variant<WaitFor, Close, Disagree>;

// Pure: whether a round with these contributions (one slot per member) may close, and why.
OwnerAction close_decision(Version version, const std::vector<std::optional<Contribution>>& inbox);

class Owner {
 public:
  Owner(int fragment, int members, Schedule schedule);

  // A contribution to the open round. A duplicate changes nothing. One that is based on another
  // version, another mode or another anchor than the others' is a disagreement.
  [[nodiscard]] OwnerAction on(const Contribution& contribution);

  // After the arithmetic of a Close: the result's hash and payloads. Opens the next round.
  [[nodiscard]] Result publish(const Close& closed, uint64_t after, Payload values, Payload side);

  Version version() const { return version_; }  // of the newest result
  std::vector<int> missing() const;             // members that the open round waits for

  bool operator==(const Owner&) const = default;

 private:
  std::optional<Disagree> check(const Contribution& contribution) const;

  int fragment_;
  Schedule schedule_;
  Version version_ = 0;
  std::vector<std::optional<Contribution>> inbox_;  // by member
};

}  // namespace hybridsync
