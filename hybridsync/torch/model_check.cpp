#include "hybridsync/torch/model_check.h"

#include <torch/nn/module.h>

#include <algorithm>
#include <sstream>

#include "hybridsync/config/error.h"
#include "hybridsync/math/hash.h"
#include "hybridsync/wire/bytes.h"

namespace hybridsync {
namespace {

constexpr size_t kPieceBytes = 16 << 20;  // a message of the rendezvous holds 64 MB at most

std::vector<at::Tensor> all_tensors(torch::nn::Module& model) {
  std::vector<at::Tensor> tensors = model.parameters();
  for (const at::Tensor& b : model.buffers()) tensors.push_back(b);
  std::erase_if(tensors, [](const at::Tensor& t) { return !t.defined(); });
  return tensors;
}

std::string describe(const std::string& kind, const std::string& name, const at::Tensor& t) {
  std::ostringstream s;
  s << kind << " " << name << " " << t.scalar_type() << t.sizes() << " strides " << t.strides()
    << (t.requires_grad() ? "" : " frozen");
  return s.str();
}

std::vector<std::string> describe(torch::nn::Module& model) {
  std::vector<std::string> lines;
  for (const auto& p : model.named_parameters())
    lines.push_back(describe("parameter", p.key(), p.value()));
  for (const auto& b : model.named_buffers())
    lines.push_back(describe("buffer", b.key(), b.value()));
  return lines;
}

std::vector<std::string> split(const Bytes& bytes) {
  std::vector<std::string> lines;
  Reader reader(bytes);
  while (reader.left() > 0 && reader.ok()) lines.push_back(reader.text());
  return lines;
}

ByteSpan raw(const at::Tensor& contiguous) {
  return {static_cast<const std::byte*>(contiguous.data_ptr()), contiguous.nbytes()};
}

at::Tensor on_host(const at::Tensor& t) { return t.detach().to(at::kCPU).contiguous(); }

Bytes pack(torch::nn::Module& model) {
  Writer writer;
  for (const at::Tensor& t : all_tensors(model)) writer.raw(raw(on_host(t)));
  return writer.take();
}

void unpack(torch::nn::Module& model, const Bytes& bytes) {
  at::NoGradGuard no_grad;
  size_t at = 0;
  for (at::Tensor t : all_tensors(model)) {
    at::Tensor host = at::empty(
        t.sizes(), t.options().device(at::kCPU).memory_format(at::MemoryFormat::Contiguous));
    std::memcpy(host.data_ptr(), bytes.data() + at, host.nbytes());
    at += host.nbytes();
    t.copy_(host);
  }
}

void compare(const std::vector<std::string>& first, const std::vector<std::string>& other,
             int rank) {
  const size_t n = std::max(first.size(), other.size());
  for (size_t i = 0; i < n; ++i) {
    const std::string a = i < first.size() ? first[i] : "nothing more";
    const std::string b = i < other.size() ? other[i] : "nothing more";
    if (a != b)
      throw ConfigError("rank 0 has " + a + ", rank " + std::to_string(rank) + " has " + b +
                        ": all ranks must build the same model from the same configuration");
  }
}

}  // namespace

void require_same_model(torch::nn::Module& model, const std::vector<std::string>& rules,
                        Rendezvous& rendezvous) {
  Writer writer;
  for (const std::string& line : rules) writer.text(line);
  for (const std::string& line : describe(model)) writer.text(line);
  const auto all = rendezvous.all_gather("model", writer.take());
  for (size_t r = 1; r < all.size(); ++r)
    compare(split(all[0]), split(all[r]), static_cast<int>(r));
}

void broadcast_from_first(torch::nn::Module& model, int rank, Rendezvous& rendezvous) {
  Writer writer;
  writer.u64(hash_of(model));
  const auto hashes = rendezvous.all_gather("weights' hash", writer.take());
  if (std::all_of(hashes.begin(), hashes.end(), [&](const Bytes& h) { return h == hashes[0]; }))
    return;
  const Bytes mine = pack(model);  // of the same size everywhere: the models are the same
  Bytes received;
  for (size_t at = 0; at < mine.size(); at += kPieceBytes) {
    const auto begin = mine.begin() + static_cast<ptrdiff_t>(at);
    const auto end = begin + static_cast<ptrdiff_t>(std::min(kPieceBytes, mine.size() - at));
    const auto pieces = rendezvous.all_gather("weights", rank == 0 ? Bytes(begin, end) : Bytes());
    received.insert(received.end(), pieces.front().begin(), pieces.front().end());
  }
  if (rank != 0) unpack(model, received);
}

uint64_t hash_of(torch::nn::Module& model) {
  uint64_t hash = 0;
  for (const at::Tensor& t : all_tensors(model)) hash = combine(hash, hash_of(raw(on_host(t))));
  return hash;
}

}  // namespace hybridsync
