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

// A threshold that about density * count of all numbers of u reach, before these are scanned. From
// a sample: runs of 16 at fixed, scattered places, 1,024 / density numbers in all but at most 1/16
// of them. Of up to 8,192 numbers it takes all.
uint32_t sampled_threshold(const ErrorFed& u, double density, std::vector<float>& sample);

}  // namespace hybridsync
