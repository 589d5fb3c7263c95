#pragma once

#include "actors/session/journal.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace godwit::test {

/// A record that can be told from others.
inline journal_record record(std::string_view text) {
  return journal_record::make([&](schema::Record::Builder b) {
    b.setAt(7);
    b.initClosed().setCause(kj::StringPtr(text.data(), text.size()));
  });
}

inline std::string text(const placed_record& placed) {
  const auto cause = placed.record.read().getClosed().getCause();
  return {cause.cStr(), cause.size()};
}

inline std::vector<std::string> texts(const std::vector<placed_record>& records) {
  std::vector<std::string> all;
  for (const auto& one : records)
    all.push_back(text(one));
  return all;
}

inline const tenant_id tenant{"default"};
inline const node_name node_a{"a"};
inline const node_name node_b{"b"};

inline session_id session(std::size_t number) {
  auto digits = std::to_string(number);
  return session_id("ses_" + std::string(8 - std::min<std::size_t>(8, digits.size()), '0') + digits);
}

/// Appends and waits for the answer.
inline result<sequence_number> append_now(journal& log, append_request request) {
  auto answer = std::make_shared<std::promise<result<sequence_number>>>();
  auto future = answer->get_future();
  log.append(
    std::move(request), [answer](result<sequence_number> got) { answer->set_value(std::move(got)); });
  if (future.wait_for(std::chrono::seconds(60)) != std::future_status::ready)
    throw std::runtime_error("no answer");
  return future.get();
}

inline append_request more(
  const session_id& to, sequence_number expected, std::vector<journal_record> records, epoch_t epoch = 1) {
  return {to, expected, epoch, std::move(records), false};
}

} // namespace godwit::test
