#include "kernels/models/fingerprint.hpp"
#include "kernels/models/model.hpp"
#include "kernels/models/model_facts.hpp"
#include "kernels/models/transformer.hpp"
#include "kernels/models/transformer_form.hpp"
#include "kernels/ops/contract.hpp"
#include "kernels/ops/dispatch.hpp"
#include "kernels/threads/team.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace godwit {

namespace {

/// More threads than this are a typing mistake.
constexpr std::uint32_t most_threads = team::most_threads;
constexpr std::uint32_t most_rows = 65536;

std::string_view wanted(const model_options& options) {
  if (!options.implementation.empty()) {
    return options.implementation;
  }
  switch (options.ops) {
  case ops_choice::reference:
    return "reference";
  case ops_choice::cpu:
    return "cpu";
  case ops_choice::automatic:
    break;
  }
  return {};
}

/// Options with an implementation of the dispatch table and a number of threads.
result<model_options> decided(const model_options& options) {
  if (options.threads > most_threads) {
    return fail(errc::invalid_argument, "at most " + std::to_string(most_threads) + " threads", "threads");
  }
  if (options.max_rows < 1 || options.max_rows > most_rows) {
    return fail(errc::invalid_argument, "a step has 1 to " + std::to_string(most_rows) + " rows", "max_rows");
  }
  const auto implementation = ops::choose(wanted(options));
  if (!implementation) {
    return fail(implementation);
  }
  const std::uint32_t threads =
    options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());

  auto out = options;
  out.implementation = *implementation;
  out.threads = threads;
  return out;
}

} // namespace

result<std::unique_ptr<model>> model::load(
  std::shared_ptr<const gguf::file> file, const model_options& options) {
  const auto how = decided(options);
  if (!how) {
    return fail(how);
  }
  const auto form = form_of(*file);
  if (!form) {
    return fail(form);
  }
  return load_transformer(std::move(file), *form, *how);
}

result<model_facts> read_model_facts(const gguf::file& file, const model_options& options) {
  const auto how = decided(options);
  if (!how) {
    return fail(how);
  }
  const auto form = form_of(file);
  if (!form) {
    return fail(form);
  }
  team workers(how->threads, how->adapts_threads);
  auto fingerprint = fingerprint_of(file, ops::contract_of(how->implementation), form->to_string(), workers);
  if (how->kv && *how->kv != ops::own_kv_type(how->implementation)) {
    fingerprint = fingerprint_with_pages(fingerprint, *how->kv);
  }
  return model_facts{
    .fingerprint = std::move(fingerprint), .context = form->context, .vocabulary = form->vocabulary};
}

} // namespace godwit
