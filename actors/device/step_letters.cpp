#include "actors/device/step_letters.hpp"

namespace godwit {

sampling_settings read_sampling(schema::Sampling::Reader from) {
  sampling_settings to;
  to.temperature = from.getTemperature();
  to.top_k = from.getTopK();
  to.top_p = from.getTopP();
  to.min_p = from.getMinP();
  to.repeat_penalty = from.getRepeatPenalty();
  to.frequency_penalty = from.getFrequencyPenalty();
  to.presence_penalty = from.getPresencePenalty();
  to.penalty_window = from.getPenaltyWindow();
  to.seed = from.getSeed();
  for (const auto bias : from.getBias())
    to.bias.emplace_back(bias.getToken(), bias.getBias());
  to.top_logprobs = from.getTopLogprobs();
  to.logprobs = from.getLogprobs();
  return to;
}

void write_token(schema::SampledToken::Builder to, const sampled& token) {
  to.setToken(token.token);
  to.setLogprob(token.logprob);
  if (token.top.empty())
    return;
  auto top = to.initTop(static_cast<unsigned>(token.top.size()));
  for (unsigned i = 0; i < top.size(); ++i) {
    top[i].setToken(token.top[i].first);
    top[i].setLogprob(token.top[i].second);
  }
}

sampled read_token(schema::SampledToken::Reader from) {
  sampled to;
  to.token = from.getToken();
  to.logprob = from.getLogprob();
  for (const auto other : from.getTop())
    to.top.emplace_back(other.getToken(), other.getLogprob());
  return to;
}

std::vector<std::uint32_t> read_ids(capnp::List<std::uint32_t>::Reader from) {
  std::vector<std::uint32_t> ids;
  ids.reserve(from.size());
  for (const auto id : from)
    ids.push_back(id);
  return ids;
}

void write_ids(capnp::List<std::uint32_t>::Builder to, std::span<const std::uint32_t> ids) {
  for (unsigned i = 0; i < to.size(); ++i)
    to.set(i, ids[i]);
}

std::vector<std::uint64_t> read_keys(capnp::List<std::uint64_t>::Reader from) {
  std::vector<std::uint64_t> keys;
  keys.reserve(from.size());
  for (const auto key : from)
    keys.push_back(key);
  return keys;
}

void write_keys(capnp::List<std::uint64_t>::Builder to, std::span<const std::uint64_t> keys) {
  for (unsigned i = 0; i < to.size(); ++i)
    to.set(i, keys[i]);
}

std::vector<block_identity> read_names(capnp::List<std::uint64_t>::Reader from) {
  std::vector<block_identity> names;
  names.reserve(from.size() / 2);
  for (unsigned i = 0; i + 1 < from.size(); i += 2)
    names.push_back({from[i], from[i + 1]});
  return names;
}

void write_names(capnp::List<std::uint64_t>::Builder to, std::span<const block_identity> names) {
  for (unsigned i = 0; i + 1 < to.size(); i += 2) {
    to.set(i, names[i / 2].low);
    to.set(i + 1, names[i / 2].high);
  }
}

letter<schema::StepSubmission> pack_submission(step_role role, step_number seen,
  std::span<const row_offer> rows, std::span<const opening_order> openings,
  std::span<const hole_filling> fillings) {
  return letter<schema::StepSubmission>::make([&](schema::StepSubmission::Builder to) {
    to.setRole(role == step_role::prefill ? schema::StepRole::PREFILL : schema::StepRole::DECODE);
    to.setSeen(seen);
    auto list = to.initRows(static_cast<unsigned>(rows.size()));
    for (unsigned i = 0; i < list.size(); ++i) {
      list[i].setSequence(rows[i].sequence);
      list[i].setTokens(rows[i].tokens);
    }
    auto opened = to.initOpenings(static_cast<unsigned>(openings.size()));
    for (unsigned i = 0; i < opened.size(); ++i) {
      const auto& order = openings[i];
      opened[i].setGenerate(order.ask.read());
      if (order.tokens.size() != order.ask.read().getTokens().size())
        write_ids(
          opened[i].getGenerate().initTokens(static_cast<unsigned>(order.tokens.size())), order.tokens);
      opened[i].setArrival(order.arrival);
      write_ids(opened[i].initCachedBlocks(static_cast<unsigned>(order.cached.size())), order.cached);
      opened[i].setCachedAtMost(order.cached_at_most);
      opened[i].setCachedHost(order.cached_host);
      opened[i].setCachedDisk(order.cached_disk);
      opened[i].setHoleAt(order.hole_at);
    }
    auto filled = to.initFillings(static_cast<unsigned>(fillings.size()));
    for (unsigned i = 0; i < filled.size(); ++i) {
      filled[i].setSequence(fillings[i].key);
      filled[i].setAt(fillings[i].at);
      write_ids(filled[i].initBlocks(static_cast<unsigned>(fillings[i].blocks.size())), fillings[i].blocks);
    }
  });
}

submission unpack(schema::StepSubmission::Reader from) {
  submission to;
  to.role = from.getRole() == schema::StepRole::PREFILL ? step_role::prefill : step_role::decode;
  to.seen = from.getSeen();
  for (const auto row : from.getRows())
    to.rows.push_back({row.getSequence(), row.getTokens()});
  for (const auto opened : from.getOpenings()) {
    const auto ask = opened.getGenerate();
    sequence_opening opening;
    opening.key = ask.getRequest();
    opening.order = {ask.getPriority(), opened.getArrival()};
    opening.tenant = ask.getTenant().cStr();
    opening.tokens = read_ids(ask.getTokens());
    opening.prompt_length = ask.getPromptLength();
    opening.sampling = read_sampling(ask.getSampling());
    opening.cached = read_ids(opened.getCachedBlocks());
    opening.cached_at_most = opened.getCachedAtMost();
    opening.cached_host = opened.getCachedHost();
    opening.cached_disk = opened.getCachedDisk();
    opening.hole_at = opened.getHoleAt();
    to.openings.push_back(std::move(opening));
  }
  for (const auto filling : from.getFillings())
    to.fillings.push_back({filling.getSequence(), filling.getAt(), read_ids(filling.getBlocks())});
  return to;
}

letter<schema::StepResult> pack(const step_result& result) {
  return letter<schema::StepResult>::make([&](schema::StepResult::Builder to) {
    to.setStep(result.step);
    auto list = to.initRows(static_cast<unsigned>(result.rows.size()));
    for (unsigned i = 0; i < list.size(); ++i) {
      const auto& row = result.rows[i];
      list[i].setSequence(row.sequence);
      list[i].setOutcome(static_cast<schema::RowOutcome>(row.outcome));
      list[i].setPrompt(row.prompt);
      list[i].setComputed(row.computed);
      list[i].setCachedTokens(row.cached);
      list[i].setCachedHost(row.cached_host);
      list[i].setCachedDisk(row.cached_disk);
      list[i].setPosition(row.position);
      if (row.outcome == row_outcome::sampled)
        write_token(list[i].initToken(), row.token);
      if (row.outcome == row_outcome::failed) {
        list[i].setErrorCode(static_cast<std::uint8_t>(row.failure.code));
        list[i].setErrorMessage(row.failure.message);
      }
    }
  });
}

step_result unpack(schema::StepResult::Reader from) {
  step_result to;
  to.step = from.getStep();
  for (const auto row : from.getRows()) {
    row_result one;
    one.sequence = row.getSequence();
    one.outcome = static_cast<row_outcome>(row.getOutcome());
    one.prompt = row.getPrompt();
    one.computed = row.getComputed();
    one.cached = row.getCachedTokens();
    one.cached_host = row.getCachedHost();
    one.cached_disk = row.getCachedDisk();
    one.position = row.getPosition();
    if (one.outcome == row_outcome::sampled)
      one.token = read_token(row.getToken());
    if (one.outcome == row_outcome::failed)
      one.failure = {static_cast<errc>(row.getErrorCode()), row.getErrorMessage().cStr(), {}, {}};
    to.rows.push_back(std::move(one));
  }
  return to;
}

letter<schema::CloseSequences> pack_close(std::span<const sequence_key> keys) {
  return letter<schema::CloseSequences>::make([&](schema::CloseSequences::Builder to) {
    write_keys(to.initSequences(static_cast<unsigned>(keys.size())), keys);
  });
}

} // namespace godwit
