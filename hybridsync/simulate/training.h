// The training side of one simulated process: a model of plain numbers, and the account of every
// fragment. Keeps its own books beside the accounts', and compares.
#pragma once

#include <memory>
#include <vector>

#include "hybridsync/simulate/book.h"
#include "hybridsync/simulate/oracle.h"
#include "hybridsync/simulate/scenario.h"
#include "hybridsync/sync/account.h"

namespace hybridsync {

class Training {
 public:
  // Starts with the numbers of the run's start. All arguments must outlive it.
  Training(const Scenario& scenario, const Process& self, Desk& desk, Oracle& oracle,
           Random random);

  // One optimizer step; gradient mode: offers the gradient, and the step comes with the result.
  void step();
  // A step boundary: takes what has arrived, checks the account.
  void take_news();
  // Offers what is due. `ended`: this node's training is over; then whatever there is, and nothing
  // as well if `anything`.
  void offer(bool ended, bool anything);
  bool must_wait() const;
  // While it waits: offers whatever owners ask for.
  void answer();

  bool has_news() const;
  // Everything that it learned is applied.
  bool at_rest() const;
  // Codes left something out that lies beside its parameters.
  bool keeps_residual() const;
  int64_t steps() const { return steps_; }
  std::vector<Oracle::Trained> trained() const;
  const std::vector<float>& parameters() const { return parameters_; }

 private:
  struct Books {                 // of one fragment
    Book numbers;                // where what was learned is
    int64_t samples = 0;         // behind what was learned since the last offer
    std::vector<uint64_t> open;  // tickets
  };
  Values part(std::vector<float>& of, const Account& account) const;
  Learned learned(double loss) const;
  bool gradient_mode() const { return accounts_.front().mode() == Mode::gradient; }
  void offer_gradient();
  void take_gradient(Account& account, Books& books);
  void offer(Account& account, Books& books, bool ended);
  void take_news(Account& account, Books& books);
  void write_down(const Account& account, Books& books, const Body* gradient);
  void give_back(int fragment, uint64_t ticket, Books& books);
  void follow();
  void check(const Account& account, const Books& books);
  void check_numbers(const Account& account, const Book& book, std::span<const float> rest);

  const Scenario& scenario_;
  const Process self_;
  Desk& desk_;
  Oracle& oracle_;
  Random random_;
  std::vector<Account> accounts_;
  std::vector<Books> books_;
  std::vector<float> parameters_, gradient_, scratch_;
  int64_t steps_ = 0, samples_ = 0;
};

}  // namespace hybridsync
