// How many of the numbers top_k sends while a run is young (Lin et al. 2018, warm-up training):
//
//   1/4, 1/16, 1/64, ...   as long as that is more than `density`, each for as many rounds,
//                          `density_warmup` of them together; then `density`
//
// A code names how many numbers it holds, so only who encodes has to know.
#pragma once

#include <cstdint>
#include <vector>

#include "hybridsync/config/codec_options.h"

namespace hybridsync {

// Those before `density`, in order; none without warm-up.
std::vector<double> warmup_densities(const CodecOptions& options);

// In the round before which so many (not negative) have carried codes.
double density_after(const CodecOptions& options, int64_t coded_rounds);

}  // namespace hybridsync
