#pragma once

#include "actors/session/prompt_plan.hpp"
#include "actors/trace/trace_scope.hpp"
#include "messages/actor_error.hpp"
#include "messages/catalogue.hpp"
#include "messages/text.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace godwit {

/// Makes a prompt with the tokenizer actor: renders the conversation, and either goes on from tokens that
/// exist (see plan_prompt) or encodes all of it. Answers once.
/// @tparam Self a pointer to the asking actor
template <class Self>
class prompt_maker : public std::enable_shared_from_this<prompt_maker<Self>> {
 public:
  using done = std::function<void(result<prepared_prompt>)>;

  prompt_maker(Self self, tokenizer_actor tokenizer, std::shared_ptr<const token_text> text,
    std::chrono::milliseconds timeout, prompt_task task, done answer)
    : self_(self), tokenizer_(std::move(tokenizer)), text_(std::move(text)), timeout_(timeout),
      task_(std::move(task)), answer_(std::move(answer)) {}

  void start() {
    if (task_.before == 0)
      return encode_all();
    render(task_.before, true, [me = this->shared_from_this()](const auto& before) {
      me->before_ = bytes(before.getText());
      me->render(me->task_.messages.size(), true, [me](const auto& now) { me->go_on(bytes(now.getText())); });
    });
  }

 private:
  static std::string bytes(capnp::Data::Reader data) {
    return {reinterpret_cast<const char*>(data.begin()), data.size()};
  }

  static std::vector<token_id> copy(capnp::List<std::uint32_t>::Reader ids) {
    std::vector<token_id> out;
    out.reserve(ids.size());
    for (const auto id : ids)
      out.push_back(id);
    return out;
  }

  template <class Then>
  void render(std::size_t count, bool text_only, Then then) {
    auto request = letter<schema::RenderRequest>::make([&](auto b) {
      auto messages = b.initMessages(static_cast<unsigned>(count));
      for (unsigned i = 0; i < count; ++i) {
        messages[i].setRole(text_view(task_.messages[i].role));
        messages[i].setContent(text_view(task_.messages[i].content));
      }
      b.setTextOnly(text_only);
    });
    const trace_scope scope(task_.trace);
    self_->request(tokenizer_, timeout_, std::move(request))
      .then([then](const letter<schema::RenderedChat>& chat) { then(chat.read()); },
        [me = this->shared_from_this()](const caf::error& why) { me->fail_with(why); });
  }

  void encode_all() {
    render(task_.messages.size(), false, [me = this->shared_from_this()](const auto& chat) {
      me->answer_(prepared_prompt{0, copy(chat.getIds())});
    });
  }

  void go_on(const std::string& now) {
    auto plan = plan_prompt(before_, task_.answer, *text_, now);
    if (!plan.reuse)
      return encode_all();
    const auto kept = task_.prompt_length + static_cast<std::uint32_t>(plan.answer_tokens);
    auto request = letter<schema::EncodeRequest>::make([&](auto b) {
      b.setText(
        capnp::Data::Reader(reinterpret_cast<const capnp::byte*>(plan.rest.data()), plan.rest.size()));
      b.setSpecial(true);
    });
    const trace_scope scope(task_.trace);
    self_->request(tokenizer_, timeout_, std::move(request))
      .then(
        [me = this->shared_from_this(), kept](const letter<schema::TokenIds>& found) {
          me->answer_(prepared_prompt{kept, copy(found.read().getIds())});
        },
        [me = this->shared_from_this()](const caf::error& why) { me->fail_with(why); });
  }

  void fail_with(const caf::error& why) { answer_(tl::unexpected<error>(from_caf_error(why))); }

  Self self_;
  tokenizer_actor tokenizer_;
  std::shared_ptr<const token_text> text_;
  std::chrono::milliseconds timeout_;
  prompt_task task_;
  std::string before_;
  done answer_;
};

} // namespace godwit
