// The three kinds of failure that leave the library as exceptions.
#pragma once

#include <stdexcept>
#include <string>

namespace hybridsync {

// The user's mistake, in a configuration, a model or a call. what() names the value and the remedy.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The run cannot go on: a peer that a synchronous tier needs is gone or disagrees. what() names the
// peer and the phase. Thrown at a step boundary, never from a hook or a thread.
class RunEnded : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The user asked to stop while something waited.
class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace hybridsync
