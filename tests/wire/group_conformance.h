// What every Group must do. A new back end passes by adding one line to kSubjects.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "hybridsync/wire/group.h"
#include "tests/wire/ranks.h"

namespace hybridsync {

// One rank's end of a group under test, with the memory that it reduces best.
class TestGroup {
 public:
  virtual ~TestGroup() = default;
  virtual Group& group() = 0;
  virtual void leave() = 0;  // destroys the group, not the memory
  // Collective. Memory of the kind that the back end reduces in place; ordinary memory if it has
  // none.
  virtual std::span<std::byte> place(size_t bytes) = 0;
};

struct GroupSubject {
  std::string name;
  RanksAs as;
  std::unique_ptr<TestGroup> (*make)(const std::string& run_id, int rank, int size,
                                     const Patience& patience);
};

struct GroupCase {
  GroupSubject subject;
  int size;
};

class GroupConformance : public testing::TestWithParam<GroupCase> {
 protected:
  using Body = std::function<std::string(TestGroup&)>;

  void SetUp() override {
    if (GetParam().subject.as == RanksAs::processes && !can_fork()) {
      GTEST_SKIP() << "ThreadSanitizer does not follow forked processes";
    }
  }
  int size() const { return GetParam().size; }
  int last() const { return size() - 1; }

  std::vector<std::string> results_of(const Patience& patience, const Body& body) const;
  // Every rank's result is empty.
  void run(const Patience& patience, const Body& body) const;
};

}  // namespace hybridsync
