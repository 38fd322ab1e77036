#include "hybridsync/torch/dataset.h"

#include <utility>
#include <vector>

#include "hybridsync/config/error.h"
#include "hybridsync/data/source.h"

namespace hybridsync {
namespace {

constexpr int64_t kContext = 64;

// Takes the memory over: no second copy.
torch::Tensor to_tensor(std::vector<uint8_t>&& bytes, torch::IntArrayRef shape) {
  auto owner = std::make_shared<std::vector<uint8_t>>(std::move(bytes));
  return torch::from_blob(
      owner->data(), shape, [owner](void*) {}, torch::kUInt8);
}

torch::Tensor to_indices(std::span<const int64_t> samples) {
  return torch::tensor(torch::IntArrayRef(samples.data(), samples.size()), torch::kInt64);
}

class ImageDataset final : public Dataset {
 public:
  explicit ImageDataset(ImageData&& data)
      : shape_{.classes = data.classes, .rows = data.rows, .columns = data.columns},
        mean_(data.mean),
        deviation_(data.deviation),
        train_(to_part(std::move(data.train))),
        held_out_(to_part(std::move(data.held_out))) {}

  const SampleShape& shape() const override { return shape_; }

  int64_t count(Part part) const override { return at(part).labels.size(0); }

  Batch batch(Part part, std::span<const int64_t> samples) const override {
    const torch::Tensor index = to_indices(samples);
    const Images& images = at(part);
    return {images.pixels.index_select(0, index)
                .to(torch::kFloat32)
                .sub_(mean_ * 255)
                .div_(deviation_ * 255),
            images.labels.index_select(0, index).to(torch::kInt64)};
  }

 private:
  struct Images {
    torch::Tensor pixels;
    torch::Tensor labels;
  };

  Images to_part(ImageSet&& set) const {
    return {to_tensor(std::move(set.pixels), {set.count, 1, shape_.rows, shape_.columns}),
            to_tensor(std::move(set.labels), {set.count})};
  }
  const Images& at(Part part) const { return part == Part::train ? train_ : held_out_; }

  SampleShape shape_;
  double mean_;
  double deviation_;
  Images train_;
  Images held_out_;
};

class TextDataset final : public Dataset {
 public:
  explicit TextDataset(TextData&& data)
      : shape_{.text = true,
               .classes = static_cast<int64_t>(data.vocabulary.size()),
               .context = kContext},
        train_(to_windows(std::move(data.train))),
        held_out_(to_windows(std::move(data.held_out))) {}

  const SampleShape& shape() const override { return shape_; }

  int64_t count(Part part) const override { return at(part).size(0); }

  Batch batch(Part part, std::span<const int64_t> samples) const override {
    const torch::Tensor windows = at(part).index_select(0, to_indices(samples)).to(torch::kInt64);
    return {windows.narrow(1, 0, kContext).contiguous(),
            windows.narrow(1, 1, kContext).contiguous()};
  }

 private:
  // [windows, context + 1], a view: each window shares its last token with the next one's first.
  static torch::Tensor to_windows(std::vector<uint8_t>&& tokens) {
    const int64_t count = window_count(tokens, kContext);
    if (count == 0) {
      throw ConfigError(
          "train.data: the text is too short: its training and its held-out part (a "
          "tenth) must each hold more than " +
          std::to_string(kContext) + " characters");
    }
    const auto size = static_cast<int64_t>(tokens.size());
    return to_tensor(std::move(tokens), {size}).as_strided({count, kContext + 1}, {kContext, 1});
  }
  const torch::Tensor& at(Part part) const { return part == Part::train ? train_ : held_out_; }

  SampleShape shape_;
  torch::Tensor train_;
  torch::Tensor held_out_;
};

struct MakeDataset {
  std::unique_ptr<Dataset> operator()(ImageData&& data) const {
    return std::make_unique<ImageDataset>(std::move(data));
  }
  std::unique_ptr<Dataset> operator()(TextData&& data) const {
    return std::make_unique<TextDataset>(std::move(data));
  }
};

}  // namespace

std::unique_ptr<Dataset> make_dataset(const std::string& name) {
  return std::visit(MakeDataset{}, read_data(name));
}

}  // namespace hybridsync
