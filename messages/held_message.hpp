#pragma once

#include <caf/mailbox_element.hpp>
#include <caf/message.hpp>

#include <utility>

namespace godwit {

/// A message on its way to a mailbox, for those that carry something beside its content.
class held_message : public caf::mailbox_element {
 public:
  held_message(caf::strong_actor_ptr from, caf::message_id id, forwarding_stack onward, caf::message content)
    : caf::mailbox_element(std::move(from), id, std::move(onward)), content_(std::move(content)) {}

  caf::type_erased_tuple& content() override { return content_; }
  const caf::type_erased_tuple& content() const override { return content_.content(); }
  caf::message move_content_to_message() override { return std::move(content_); }
  caf::message copy_content_to_message() const override { return content_; }

 private:
  caf::message content_;
};

} // namespace godwit
