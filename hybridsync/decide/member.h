// A node's side of one fragment's rounds: a machine without sockets, threads or clock. This is the
// synchronous part: at most one contribution is unresolved, and training waits for its result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "hybridsync/decide/messages.h"

namespace hybridsync {

// Apply the result, then tell the machine with applied().
struct Apply {
  Result result;
};
// The message changes nothing.
struct Ignore {
  std::string why;
};
// The run cannot go on.
struct Diverged {
  std::string why;
};
using MemberAction = std::variant<Apply, Ignore, Diverged>;

class Member {
 public:
  Member(int fragment, int node, Schedule schedule);

  // Whether a round is due after this many steps on top of the newest result.
  bool due(int64_t steps_since_result) const { return steps_since_result >= interval_; }

  // Completes a draft (all but node, sequence, base and mode) and makes it the unresolved one.
  // Nothing may be unresolved before.
  [[nodiscard]] Contribution contribute(Contribution draft);

  [[nodiscard]] MemberAction on(const Result& result);
  // After the arithmetic of an Apply: what it gave, to be compared with what the owner has.
  [[nodiscard]] std::optional<Diverged> applied(const Result& result, uint64_t after);

  Version version() const { return version_; }
  Mode mode() const { return mode_; }             // of the next round
  int64_t interval() const { return interval_; }  // K of the next round
  bool unresolved() const { return unresolved_.has_value(); }
  bool finished() const { return finished_; }  // every member is

  bool operator==(const Member&) const = default;

 private:
  int fragment_;
  int node_;
  Version version_ = 0;
  Mode mode_;
  int64_t interval_;
  bool finished_ = false;
  uint64_t sequence_ = 0;
  std::optional<Contribution> unresolved_;
};

}  // namespace hybridsync
