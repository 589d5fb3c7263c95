#pragma once

#include "kernels/gguf/file.hpp"

#include <nlohmann/json.hpp>

namespace godwit::cli {

/// What a person or a script wants to know of a model file: its shape, its tensors by type, its tokenizer and
/// template, the digests that become part of a session's fingerprint, and the dispatch table of this machine.
/// What the file does not say is null. A graph, tokenizer or template that cannot be used has an `error`, and
/// there is an `ops_error` if GODWIT_OPS names nothing that can run here.
nlohmann::ordered_json model_info(const gguf::file& file);

/// Prints what model_info() gave as text.
void print_model_info(const nlohmann::ordered_json& info);

} // namespace godwit::cli
