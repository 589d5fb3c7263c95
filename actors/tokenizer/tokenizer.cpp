#include "actors/tokenizer/tokenizer.hpp"

#include "actors/tokenizer/bpe_tokenizer.hpp"
#include "actors/tokenizer/piece_tokenizer.hpp"

namespace godwit {

result<std::shared_ptr<const tokenizer>> tokenizer::load(const gguf::file& file) {
  const auto model = file.string_value("tokenizer.ggml.model");
  if (!model)
    return fail(model);
  if (*model == "gpt2")
    return bpe_tokenizer::load(file);
  if (*model == "llama")
    return piece_tokenizer::load(file);
  return fail(errc::unsupported, "the model file's \"tokenizer.ggml.model\" is \""
                                   + std::string(model->substr(0, 64)) + "\", which is not supported");
}

} // namespace godwit
