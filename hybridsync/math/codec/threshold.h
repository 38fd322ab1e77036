// How many numbers are wanted, and an estimate of the threshold that as many reach.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hybridsync/math/codec/error_fed.h"

namespace hybridsync {

// Of so many numbers: density * count rounded, at least 1 and at most all.
size_t wanted_of(double density, size_t count);

// What about density * count of all of u reach, before it is scanned, from a sample: a run of 16 at
// a fixed, scattered place of every stretch, 1,024 / density numbers in all but at most 1/16 of
// all. Of up to 8,192 numbers it takes all.
uint32_t sampled_threshold(const ErrorFed& u, double density, std::vector<float>& sample);

}  // namespace hybridsync
