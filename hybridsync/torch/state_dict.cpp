#include "hybridsync/torch/state_dict.h"

#include <caffe2/serialize/inline_container.h>
#include <fcntl.h>
#include <torch/csrc/jit/serialization/pickler.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <vector>

namespace hybridsync {
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& path) {
  throw std::runtime_error("cannot " + what + " " + path + ": " + std::strerror(errno));
}

class File {
 public:
  File(const std::string& path, int flags) : path_(path), fd_(open(path.c_str(), flags, 0644)) {
    if (fd_ < 0) fail("open", path);
  }
  ~File() { close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(const std::vector<char>& bytes) {
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t n = ::write(fd_, bytes.data() + done, bytes.size() - done);
      if (n < 0 && errno != EINTR) fail("write", path_);
      if (n > 0) done += static_cast<size_t>(n);
    }
  }
  void sync() {
    if (fsync(fd_) != 0) fail("sync", path_);
  }

 private:
  std::string path_;
  int fd_;
};

// A view would bring all of its storage along.
torch::Tensor whole(const torch::Tensor& tensor) {
  const torch::Tensor values = tensor.detach().cpu().contiguous();
  const bool view = values.storage().nbytes() != values.nbytes();
  return view ? values.clone() : values;
}

// torch::pickle_save() would do, but for the type tags that it adds to a dict: Python's torch.load
// refuses them where it loads weights only, its default.
std::vector<char> to_archive(const c10::IValue& state) {
  std::string program;
  const auto append = [&](const char* data, size_t n) { program.append(data, n); };
  torch::jit::Pickler pickler(append, nullptr, nullptr, nullptr, nullptr, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(state);
  pickler.stop();

  std::vector<char> archive;
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* data, size_t n) {
    const auto* bytes = static_cast<const char*>(data);
    archive.insert(archive.end(), bytes, bytes + n);
    return n;
  });
  writer.writeRecord("data.pkl", program.data(), program.size());
  size_t index = 0;
  for (const torch::Tensor& tensor : pickler.tensorData()) {
    writer.writeRecord("data/" + std::to_string(index++), tensor.data_ptr(), tensor.nbytes());
  }
  writer.writeEndOfFile();
  return archive;
}

void replace(const std::string& path, const std::vector<char>& bytes) {
  const std::string aside = path + ".part";
  {
    File file(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
    file.write(bytes);
    file.sync();
  }
  if (std::rename(aside.c_str(), path.c_str()) != 0) fail("rename to", path);
  const auto folder = std::filesystem::absolute(path).parent_path();
  File(folder.string(), O_RDONLY | O_DIRECTORY | O_CLOEXEC).sync();
}

}  // namespace

void save_tensors(const std::map<std::string, torch::Tensor>& tensors, const std::string& path) {
  c10::Dict<std::string, torch::Tensor> state;
  for (const auto& [name, tensor] : tensors) state.insert(name, whole(tensor));
  replace(path, to_archive(state));
}

void save_state_dict(const torch::nn::Module& model, const std::string& path) {
  c10::Dict<std::string, torch::Tensor> state;
  const auto add = [&](const auto& named) {
    for (const auto& item : named) {
      if (item.value().defined()) state.insert(item.key(), whole(item.value()));
    }
  };
  add(model.named_parameters());
  add(model.named_buffers());
  replace(path, to_archive(state));
}

std::map<std::string, torch::Tensor> load_state_dict(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("open", path);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::map<std::string, torch::Tensor> state;
  for (const auto& item : torch::pickle_load(bytes).toGenericDict()) {
    state[item.key().toStringRef()] = item.value().toTensor();
  }
  return state;
}

}  // namespace hybridsync
