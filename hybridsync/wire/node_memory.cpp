// Allocation in step: every rank sends its request to rank 0, which compares them, creates the
// memfd and hands it out ("memory" with the descriptor), or tells everybody what is wrong ("fail
// WHY").
#include "hybridsync/wire/node_memory.h"

#include <poll.h>

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "hybridsync/config/error.h"
#include "hybridsync/wire/mapping.h"
#include "hybridsync/wire/node_rendezvous.h"
#include "hybridsync/wire/pidfd.h"

namespace hybridsync {
namespace {

constexpr size_t kPage = 4096;

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

class MemfdNodeMemory : public NodeMemory {
 public:
  MemfdNodeMemory(const NodeSeat& seat, const Patience& patience)
      : seat_(seat), patience_(patience), links_(meet_in_node(seat_, patience_)) {}

  int rank() const override { return seat_.rank; }
  int size() const override { return seat_.size; }
  int node() const override { return seat_.node; }
  int pid(int rank) const override { return links_.peers[rank].pid; }

  Slots allocate_slots(size_t bytes) override {
    const size_t stride = round_up(bytes + 1, kPage);
    auto mapping = allocate(std::to_string(bytes) + " bytes per rank", stride * size());
    const int id = static_cast<int>(slots_.size());
    slots_.push_back({mapping->data(), stride, bytes, id});
    return slots_.back();
  }

  std::span<std::byte> allocate_common(size_t bytes) override {
    return {allocate(std::to_string(bytes) + " common bytes", bytes + 1)->data(), bytes};
  }

  const Slots* find(const std::byte* address) const override {
    const auto at = reinterpret_cast<uintptr_t>(address);
    for (const auto& slots : slots_) {
      const auto begin = reinterpret_cast<uintptr_t>(slots.slot(rank()).data());
      if (at >= begin && at < begin + slots.bytes) return &slots;
    }
    return nullptr;
  }

  bool alive(int rank) const override {
    return rank == seat_.rank || process_lives(links_.peers[rank].pidfd);
  }

 private:
  std::shared_ptr<Mapping> allocate(const std::string& request, size_t bytes) {
    if (!failure_.empty()) throw RunEnded(failure_);
    try {
      const auto memfd = rank() == 0 ? hand_out(request, bytes) : ask_for(request);
      mappings_.push_back(Mapping::open(memfd));
    } catch (const std::exception& error) {
      failure_ = error.what();
      tell_all("fail " + failure_);
      throw;
    }
    return mappings_.back();
  }

  FileDescriptor hand_out(const std::string& request, size_t bytes) {
    Waiter waiter(patience_);
    for (int r = 1; r < size(); ++r) {
      const auto message = receive(r, waiter, request);
      if (message.text != request) {
        throw RunEnded(rank_name(node(), r) + " allocates " + message.text + ", rank 0 " + request);
      }
    }
    FileDescriptor memfd = Mapping::create(round_up(bytes, kPage));
    const int fd = memfd.get();
    for (int r = 1; r < size(); ++r) links_.connections[r].send("memory", {&fd, 1});
    return memfd;
  }

  FileDescriptor ask_for(const std::string& request) {
    Waiter waiter(patience_);
    links_.connections[0].send(request);
    auto message = receive(0, waiter, request);
    if (message.descriptors.empty()) throw RunEnded("rank 0 sent no memory: " + message.text);
    return std::move(message.descriptors[0]);
  }

  // The next request or answer of that rank; failures of the node end this allocation too.
  LocalSocket::Message receive(int from, Waiter& waiter, const std::string& request) {
    const std::string what = "allocation of " + request;
    LocalSocket::Message message;
    bool told = false;
    for (int late = from;;) {
      const bool lives = alive(from);  // before the look at the socket: last words count
      const auto state = links_.connections[from].receive(&message);
      if (state == LocalSocket::State::message) {
        if (message.text.starts_with("fail ")) throw RunEnded(message.text.substr(5));
        if (!message.text.starts_with("late ")) return message;
        late = std::stoi(message.text.substr(5));
        continue;
      }
      if (state == LocalSocket::State::closed || !lives) {
        throw RunEnded(gone_sentence(node(), from, pid(from), what));
      }
      if (rank() == 0 && !std::exchange(told, true)) tell_all("late " + std::to_string(from));
      check(waiter, late, what);
      pollfd watched{links_.connections[from].fd(), POLLIN, 0};
      ::poll(&watched, 1, static_cast<int>(waiter.slice().count()));
    }
  }

  void check(Waiter& waiter, int late, const std::string& what) const {
    switch (waiter.check([&] { return Waiting{0, {late}, what}; })) {
      case Waiter::Verdict::go_on:
        return;
      case Waiter::Verdict::timed_out:
        throw RunEnded(late_sentence(node(), {late}, what, patience_));
      case Waiter::Verdict::left:
      case Waiter::Verdict::interrupted:
        throw Interrupted("interrupted while " + rank_name(node(), rank()) + " waited for rank " +
                          std::to_string(late) + ": " + what);
    }
  }

  void tell_all(const std::string& text) {
    for (auto& connection : links_.connections) {
      if (connection) connection.send(text);
    }
  }

  const NodeSeat seat_;
  const Patience patience_;
  NodeLinks links_;
  std::deque<Slots> slots_;  // find() hands out addresses
  std::vector<std::shared_ptr<Mapping>> mappings_;
  std::string failure_;
};

}  // namespace

std::unique_ptr<NodeMemory> make_node_memory(const std::string& run_id, int node, int rank,
                                             int size, const Patience& patience) {
  return std::make_unique<MemfdNodeMemory>(NodeSeat{run_id, node, rank, size}, patience);
}

}  // namespace hybridsync
