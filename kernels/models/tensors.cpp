#include "kernels/models/tensors.hpp"

namespace godwit {

namespace {

std::string to_string(const std::vector<std::uint64_t>& shape) {
  std::string text;
  for (const auto extent : shape) {
    text += (text.empty() ? "[" : ", ") + std::to_string(extent);
  }
  return text + "]";
}

} // namespace

result<const gguf::tensor*> tensor_set::take(
  const std::string& name, const std::vector<std::uint64_t>& shape) {
  const auto* tensor = file_.find_tensor(name);
  if (tensor == nullptr) {
    return fail(errc::corrupt, "the model file lacks the tensor " + name);
  }
  // Trailing ones say nothing.
  auto actual = tensor->shape;
  while (actual.size() > shape.size() && actual.back() == 1) {
    actual.pop_back();
  }
  if (actual != shape) {
    return fail(errc::corrupt, "the tensor " + name + " has the shape " + to_string(tensor->shape)
                                 + ", the model's numbers ask for " + to_string(shape));
  }
  taken_.emplace(name);
  return tensor;
}

result<void> tensor_set::nothing_left() const {
  for (const auto& tensor : file_.tensors()) {
    if (!taken_.contains(tensor.name)) {
      return fail(errc::unsupported, "the model file has the tensor " + std::string{tensor.name}
                                       + ", which its architecture does not use");
    }
  }
  return {};
}

} // namespace godwit
