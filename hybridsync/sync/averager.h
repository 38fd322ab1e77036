// What an owner makes of contributions: their mean in the order given, encoded once more for all
// members; what that code leaves out is added to the next mean. One per lane, on its comm thread.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "hybridsync/decide/fragments.h"
#include "hybridsync/decide/schedule.h"
#include "hybridsync/sync/coder.h"

namespace hybridsync {

class Averager {
 public:
  Averager(const FragmentTable& table, const CodecOptions& codec);

  // Could these be a fragment's numbers, by their length?
  bool fits(int fragment, Mode mode, size_t bytes) const;

  struct Term {
    ByteSpan bytes;
    double weight = 0;  // more than 0
  };
  // The bytes of the result. `last`: with all that was left out before, plainly. Nothing when a
  // term is no code: `bad` is its index then.
  std::optional<Bytes> mean(int fragment, Mode mode, std::span<const Term> terms, bool last,
                            size_t& bad);

  // The numbers of a result; empty where they are no code. Valid until the next call.
  ConstValues numbers(int fragment, ByteSpan bytes);

  const CodingCosts& costs() const { return coder_.costs(); }

 private:
  ConstValues numbers(const Fragment& fragment, ByteSpan bytes, std::vector<std::byte>& memory);
  Bytes code(const Fragment& fragment, std::span<const float> mean, bool last);

  const FragmentTable table_;
  Coder coder_;
  std::map<int, std::vector<float>> residuals_;  // by fragment
  std::vector<std::byte> scratch_;
};

}  // namespace hybridsync
