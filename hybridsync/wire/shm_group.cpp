// Collectives as one rank sees them: write, pass the gate, read.
//
// Whatever a rank writes before pass number n lies in place n % 3 of its desk (the record of its
// call) and of its tray (a piece of the payload). It stays readable until pass n + 2 at least, so
// one pass per piece is enough: place n % 3 is written again only before pass n + 3, after pass n
// + 2.
#include <algorithm>
#include <cassert>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "hybridsync/wire/group.h"
#include "hybridsync/wire/node_rendezvous.h"
#include "hybridsync/wire/shm_gate.h"
#include "hybridsync/wire/sum.h"

namespace hybridsync {
namespace {

constexpr size_t kPlaces = 3;
constexpr size_t kPieceBytes = 256 << 10;  // fits the second-level cache with room for the sums
constexpr size_t kSmallBytes = 16 << 10;  // up to here every rank sums all by itself: one pass less
constexpr size_t kLineBytes = 64;

enum class Kind : uint32_t { all_reduce_f32, all_reduce_f64, all_gather, broadcast, barrier };

constexpr const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::all_reduce_f32:
    case Kind::all_reduce_f64:
      return "all_reduce";
    case Kind::all_gather:
      return "all_gather";
    case Kind::broadcast:
      return "broadcast";
    case Kind::barrier:
      return "barrier";
  }
  return "";
}

// What a rank called, and where in its slots the values lie (slots -1: elsewhere).
struct alignas(kLineBytes) Call {
  Kind kind;
  int root;
  uint64_t bytes;
  int slots;
  uint64_t offset;

  bool agrees(const Call& o) const { return kind == o.kind && root == o.root && bytes == o.bytes; }
  bool same_place(const Call& o) const { return slots == o.slots && offset == o.offset; }
};

std::string text_of(const Call& call) {
  std::string text = text_of(ShmGate::Errand{name_of(call.kind), call.bytes});
  if (call.kind == Kind::all_reduce_f32) text += " in float";
  if (call.kind == Kind::all_reduce_f64) text += " in double";
  if (call.kind == Kind::broadcast) text += " from rank " + std::to_string(call.root);
  return text;
}

size_t pieces_of(size_t bytes) {
  return std::max<size_t>(1, (bytes + kPieceBytes - 1) / kPieceBytes);
}

// memcpy wants valid pointers even for nothing.
void copy_bytes(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

// The part of `bytes` that is piece i.
struct Piece {
  size_t at;
  size_t bytes;
};
Piece piece_of(size_t bytes, size_t i) {
  const size_t at = std::min(bytes, i * kPieceBytes);
  return {at, std::min(kPieceBytes, bytes - at)};
}

class ShmGroup : public Group {
 public:
  ShmGroup(NodeMemory& memory, Patience patience)
      : memory_(memory), gate_(memory, std::move(patience)) {
    const size_t desk_bytes = kPlaces * sizeof(Call);
    desks_ = memory.allocate_slots(desk_bytes);
    trays_ = memory.allocate_slots(kPlaces * kPieceBytes);
  }

  int rank() const override { return memory_.rank(); }
  int size() const override { return memory_.size(); }
  void set_phase(std::string phase, bool limited) override {
    gate_.set_phase(std::move(phase), limited);
  }
  Counters counters() const override { return counters_; }

  Outcome all_reduce(Values values) override {
    if (failed()) return failure_;
    ++counters_.reductions;
    return std::visit([this](auto span) { return finish(reduce(span)); }, values);
  }

  Outcome all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    assert(all.size() == mine.size() * size() && "all_gather needs room for every rank's bytes");
    if (failed()) return failure_;
    return finish(gather(mine, all));
  }

  Outcome broadcast(std::span<std::byte> bytes, int root) override {
    assert(root >= 0 && root < size() && "broadcast from a rank of the group");
    if (failed()) return failure_;
    return finish(send_down(bytes, root));
  }

  Outcome barrier() override {
    if (failed()) return failure_;
    return finish(enter({Kind::barrier, -1, 0, -1, 0}, 0));
  }

 private:
  bool failed() const { return !failure_.ok(); }

  Outcome finish(Outcome outcome) {
    if (!outcome.ok()) failure_ = outcome;
    return outcome;
  }

  // The number of the pass that comes next.
  uint64_t next_pass() const { return gate_.passed() + 1; }

  Call& call_of(int rank, uint64_t pass) const {
    return reinterpret_cast<Call*>(desks_.slot(rank).data())[pass % kPlaces];
  }
  std::byte* tray(int rank, uint64_t pass) const {
    return trays_.slot(rank).data() + pass % kPlaces * kPieceBytes;
  }

  Outcome pass() { return gate_.pass({name_of(call_.kind), call_.bytes}); }

  // The first pass of a collective: everybody's calls must agree.
  Outcome enter(const Call& call, size_t contributed_bytes) {
    if (size() > 1) counters_.bytes += static_cast<int64_t>(contributed_bytes);
    ++counters_.collectives;
    call_ = call;
    call_of(rank(), next_pass()) = call;
    if (Outcome outcome = pass(); !outcome.ok()) return outcome;
    const Call& first = call_of(0, gate_.passed());
    for (int r = 1; r < size(); ++r) {
      const Call& other = call_of(r, gate_.passed());
      if (!other.agrees(first)) return mismatch(first, r, other);
    }
    return {};
  }

  Outcome mismatch(const Call& first, int rank, const Call& other) const {
    return {Outcome::Kind::mismatch, rank,
            rank_name(memory_.node(), rank) + " called " + text_of(other) + ", rank 0 called " +
                text_of(first)};
  }

  template <typename T>
  Outcome reduce(std::span<T> values) {
    const auto bytes = std::as_writable_bytes(values);
    Call call{std::is_same_v<T, float> ? Kind::all_reduce_f32 : Kind::all_reduce_f64, -1,
              bytes.size(), -1, 0};
    if (size() == 1) return enter(call, bytes.size());
    if (bytes.size() <= kSmallBytes) return reduce_small(values, call);
    const NodeMemory::Slots* slots = slots_around(bytes);
    if (slots) {
      call.slots = slots->id;
      call.offset = static_cast<uint64_t>(bytes.data() - slots->slot(rank()).data());
    } else {
      copy_in(bytes, 0);
    }
    if (Outcome outcome = enter(call, bytes.size()); !outcome.ok()) return outcome;
    if (!same_place_everywhere()) {
      copy_in(bytes, 0);
      if (Outcome outcome = pass(); !outcome.ok()) return outcome;
    } else if (slots) {
      return reduce_in_place<T>(*slots, call.offset, values.size());
    }
    return reduce_by_pieces(values);
  }

  const NodeMemory::Slots* slots_around(std::span<const std::byte> bytes) const {
    const auto* slots = memory_.find(bytes.data());
    if (!slots) return nullptr;
    const auto own = slots->slot(rank());
    return bytes.data() + bytes.size() <= own.data() + own.size() ? slots : nullptr;
  }

  bool same_place_everywhere() const {
    const Call& first = call_of(0, gate_.passed());
    for (int r = 1; r < size(); ++r) {
      if (!call_of(r, gate_.passed()).same_place(first)) return false;
    }
    return true;
  }

  // Everybody's values lie on the trays after one pass; each rank sums all of them for itself.
  template <typename T>
  Outcome reduce_small(std::span<T> values, const Call& call) {
    copy_in(std::as_writable_bytes(values), 0);
    if (Outcome outcome = enter(call, values.size_bytes()); !outcome.ok()) return outcome;
    std::vector<const T*> sources;
    for (int r = 0; r < size(); ++r) {
      sources.push_back(reinterpret_cast<const T*>(tray(r, gate_.passed())));
    }
    T* const target = values.data();
    sum_in_order<T>(sources, {&target, 1}, values.size());
    return {};
  }

  // This rank's share of `count` numbers, in whole cache lines.
  template <typename T>
  std::pair<size_t, size_t> share_of(size_t count) const {
    constexpr size_t kPerLine = kLineBytes / sizeof(T);
    const size_t lines = (count + kPerLine - 1) / kPerLine;
    const auto border = [&](size_t r) { return std::min(count, lines * r / size() * kPerLine); };
    const size_t begin = border(rank());
    return {begin, border(rank() + 1) - begin};
  }

  // Each rank sums its share over all slots and writes it to all of them.
  template <typename T>
  Outcome reduce_in_place(const NodeMemory::Slots& slots, uint64_t offset, size_t count) {
    const auto [begin, share] = share_of<T>(count);
    std::vector<T*> places;
    for (int r = 0; r < size(); ++r) {
      places.push_back(reinterpret_cast<T*>(slots.slot(r).data() + offset) + begin);
    }
    sum_in_order<T>(std::vector<const T*>(places.begin(), places.end()), places, share);
    return pass();
  }

  // While piece i is summed, piece i + 1 is laid out: one pass per piece. Piece 0 lies there
  // already. The sums of a piece replace rank 0's part of it.
  template <typename T>
  Outcome reduce_by_pieces(std::span<T> values) {
    const auto bytes = std::as_writable_bytes(values);
    const size_t pieces = pieces_of(bytes.size());
    for (size_t i = 0; i < pieces; ++i) {
      const auto [at, piece_bytes] = piece_of(bytes.size(), i);
      const uint64_t laid_out = gate_.passed();
      if (i + 1 < pieces) copy_in(bytes, i + 1);
      sum_share<T>(laid_out, piece_bytes / sizeof(T));
      if (Outcome outcome = pass(); !outcome.ok()) return outcome;
      copy_bytes(bytes.data() + at, tray(0, laid_out), piece_bytes);
    }
    return {};
  }

  template <typename T>
  void sum_share(uint64_t laid_out, size_t count) const {
    const auto [begin, share] = share_of<T>(count);
    std::vector<const T*> sources;
    for (int r = 0; r < size(); ++r) {
      sources.push_back(reinterpret_cast<const T*>(tray(r, laid_out)) + begin);
    }
    T* const target = reinterpret_cast<T*>(tray(0, laid_out)) + begin;
    sum_in_order<T>(sources, {&target, 1}, share);
  }

  // Puts piece i on this rank's tray for the next pass.
  void copy_in(std::span<const std::byte> bytes, size_t i) const {
    const auto [at, piece_bytes] = piece_of(bytes.size(), i);
    copy_bytes(tray(rank(), next_pass()), bytes.data() + at, piece_bytes);
  }

  Outcome gather(std::span<const std::byte> mine, std::span<std::byte> all) {
    for (size_t i = 0; i < pieces_of(mine.size()); ++i) {
      copy_in(mine, i);
      Outcome outcome =
          i == 0 ? enter({Kind::all_gather, -1, mine.size(), -1, 0}, mine.size()) : pass();
      if (!outcome.ok()) return outcome;
      const auto [at, piece_bytes] = piece_of(mine.size(), i);
      for (int r = 0; r < size(); ++r) {
        copy_bytes(all.data() + r * mine.size() + at, tray(r, gate_.passed()), piece_bytes);
      }
    }
    return {};
  }

  Outcome send_down(std::span<std::byte> bytes, int root) {
    for (size_t i = 0; i < pieces_of(bytes.size()); ++i) {
      if (rank() == root) copy_in(bytes, i);
      Outcome outcome = i == 0 ? enter({Kind::broadcast, root, bytes.size(), -1, 0},
                                       rank() == root ? bytes.size() : 0)
                               : pass();
      if (!outcome.ok()) return outcome;
      const auto [at, piece_bytes] = piece_of(bytes.size(), i);
      if (rank() != root) copy_bytes(bytes.data() + at, tray(root, gate_.passed()), piece_bytes);
    }
    return {};
  }

  NodeMemory& memory_;
  ShmGate gate_;
  NodeMemory::Slots desks_;
  NodeMemory::Slots trays_;
  Call call_{};
  Counters counters_;
  Outcome failure_;
};

}  // namespace

std::unique_ptr<Group> make_shm_group(NodeMemory& memory, Patience patience) {
  return std::make_unique<ShmGroup>(memory, std::move(patience));
}

}  // namespace hybridsync
