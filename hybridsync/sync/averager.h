// What an owner makes of contributions: their mean in the order given, encoded once more for all
// members; what that code leaves out is added to the next mean. One per lane, on its comm thread.
//
// What is left out belongs to the lineage that the result led to, named by its chain: only a round
// on top of that very lineage brings it in, so a tail that is dropped takes its own with it and
// leaves what was there before. A round on top of another owner's result starts from nothing.
//
// With gains, a result is the code and then its gain; a plain one has none.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "hybridsync/decide/fragments.h"
#include "hybridsync/decide/schedule.h"
#include "hybridsync/sync/coder.h"
#include "hybridsync/sync/forgotten.h"
#include "hybridsync/sync/gains.h"

namespace hybridsync {

// Of a last round that brings nothing but what its owner had left out.
inline constexpr double kRestWeight = std::numeric_limits<double>::min();

class Averager {
 public:
  Averager(const FragmentTable& table, const Schedule& schedule, const CodecOptions& codec,
           const SmallTensors& small = {}, Gains gains = Gains());

  // Could these be a fragment's numbers in the round on top of `version`, by their length?
  bool fits(int fragment, Version version, size_t bytes) const;

  struct Term {
    ByteSpan bytes;
    double weight = 0;        // more than 0
    double squared_norm = 0;  // of what it is the code of; for gains
  };
  // The bytes of the result on top of this version of the lineage `chain`. `last`, of deltas: with
  // all that was left out before, plainly, if that is all there is, too; of gradients: what was and
  // is left out is forgotten. Empty where there is nothing to bring. Nothing when a term is no
  // code: `bad` is its index then.
  std::optional<Bytes> mean(int fragment, Version version, uint64_t chain,
                            std::span<const Term> terms, bool last, size_t& bad);
  // The newest mean of a fragment led to this lineage: keeps what it left out.
  void publish(int fragment, Version version, uint64_t chain);
  // Nobody goes back to a version before `oldest` any more: drops what was kept there. Gives the
  // squared norm of what no round of this owner has brought in.
  double forget(int fragment, Version oldest);
  // The squared norm of what was forgotten on purpose since the last call: by error_feedback below
  // 1, and by last rounds of gradients.
  double take_forgotten() { return forgotten_.take(); }

  // What is kept for a lineage; none where nothing is.
  std::span<const float> left_out(int fragment, uint64_t chain) const;

  // A result is plain where all of its mean would not be longer, and in the last round. It holds
  // nothing back.
  bool is_plain(int fragment, ByteSpan result) const;
  // The bytes of a result without its gain.
  ByteSpan code_in(int fragment, ByteSpan result) const;
  // Of a result that is not plain, where there are gains; otherwise 1.
  double gain_in(int fragment, ByteSpan result) const;
  // The numbers of a result; empty where they are no code. Valid until the next call.
  ConstValues numbers(int fragment, ByteSpan result);

  CodingCosts costs() const { return coders_.costs(); }

 private:
  struct Kept {
    Version version = 0;
    uint64_t chain = 0;
    std::vector<float> residual;
    bool spent = false;  // a round of this owner on top of it was published
  };
  struct Residuals {
    std::vector<Kept> kept;     // by version
    std::vector<float> coming;  // of the newest mean
    uint64_t onto = 0;          // on top of which it is
    double lost = 0;            // squared norm, since it was last told
  };

  ConstValues numbers(const Fragment& fragment, ByteSpan bytes, std::vector<std::byte>& memory);
  Bytes code(const Fragment& fragment, std::span<const float> mean, bool last);
  Bytes with_gain(const Fragment& fragment, std::span<const float> mean, Bytes code,
                  size_t members);
  void forget_coming(Residuals& residuals);

  const FragmentTable table_;
  const Schedule schedule_;
  const Coders coders_;
  Gains gains_;
  std::map<int, Residuals> residuals_;  // by fragment
  Forgotten forgotten_;
  std::vector<std::byte> scratch_;
};

}  // namespace hybridsync
