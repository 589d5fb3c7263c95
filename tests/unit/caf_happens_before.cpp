// CAF orders what actors do by lock-free mailboxes inside its shared library, which ThreadSanitizer does not
// instrument: it would report every message and every actor's state as a race. This file stands before CAF's
// own functions (the dynamic linker takes the program's definition first) and tells ThreadSanitizer the edges
// that CAF guarantees:
//   launch or enqueue of an actor  happens before  its next resume or message
//   one message of an actor        happens before  its next one, on whatever thread
//   dropping a reference           happens before  the destruction by whoever drops the last
// Everything else is left to ThreadSanitizer. Linked into the tests of the tsan preset only.

#include <caf/error.hpp>
#include <caf/execution_unit.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/resumable.hpp>

#include <dlfcn.h>

#include <cstddef>

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}

namespace {

/// CAF's own definition of a symbol that this file defines too.
template <class Function>
Function original(const char* symbol) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, symbol));
}

/// Distance of `resumable` in `scheduled_actor`, as the thunk's name says.
constexpr std::ptrdiff_t resumable_offset = 160;

} // namespace

#define SCHEDULED(name) "_ZN3caf15scheduled_actor" name
#define ENQUEUE_ARGUMENTS "ESt10unique_ptrINS_15mailbox_elementENS_6detail8disposerEEPNS_14execution_unitE"

extern "C" {

// caf::scheduled_actor::enqueue(mailbox_element_ptr, execution_unit*)
void scheduled_enqueue(void* self, caf::mailbox_element_ptr element, caf::execution_unit* unit) asm(
  SCHEDULED("7enqueue") ENQUEUE_ARGUMENTS);
void scheduled_enqueue(void* self, caf::mailbox_element_ptr element, caf::execution_unit* unit) {
  static const auto call = original<void (*)(void*, caf::mailbox_element_ptr, caf::execution_unit*)>(
    SCHEDULED("7enqueue") ENQUEUE_ARGUMENTS);
  __tsan_release(self);
  call(self, std::move(element), unit);
}

// caf::blocking_actor::enqueue, and the two ways to wait for it
void blocking_enqueue(void* self, caf::mailbox_element_ptr element, caf::execution_unit* unit) asm(
  "_ZN3caf14blocking_actor7enqueue" ENQUEUE_ARGUMENTS);
void blocking_enqueue(void* self, caf::mailbox_element_ptr element, caf::execution_unit* unit) {
  static const auto call = original<void (*)(void*, caf::mailbox_element_ptr, caf::execution_unit*)>(
    "_ZN3caf14blocking_actor7enqueue" ENQUEUE_ARGUMENTS);
  __tsan_release(self);
  call(self, std::move(element), unit);
}

caf::mailbox_element_ptr blocking_dequeue(void* self) asm("_ZN3caf14blocking_actor7dequeueEv");
caf::mailbox_element_ptr blocking_dequeue(void* self) {
  static const auto call = original<caf::mailbox_element_ptr (*)(void*)>("_ZN3caf14blocking_actor7dequeueEv");
  auto element = call(self);
  __tsan_acquire(self);
  return element;
}

void blocking_await(void* self) asm("_ZN3caf14blocking_actor10await_dataEv");
void blocking_await(void* self) {
  static const auto call = original<void (*)(void*)>("_ZN3caf14blocking_actor10await_dataEv");
  call(self);
  __tsan_acquire(self);
}

// caf::blocking_actor::mailbox_visitor::operator()(mailbox_element&): one message; the visitor's first member
// is the actor
int blocking_visit(void** visitor, caf::mailbox_element& element) asm(
  "_ZN3caf14blocking_actor15mailbox_visitorclERNS_15mailbox_elementE");
int blocking_visit(void** visitor, caf::mailbox_element& element) {
  static const auto call = original<int (*)(void**, caf::mailbox_element&)>(
    "_ZN3caf14blocking_actor15mailbox_visitorclERNS_15mailbox_elementE");
  __tsan_acquire(*visitor);
  return call(visitor, element);
}

// caf::scheduled_actor::launch(execution_unit*, bool lazy, bool hide)
void scheduled_launch(void* self, caf::execution_unit* unit, bool lazy, bool hide) asm(
  SCHEDULED("6launchEPNS_14execution_unitEbb"));
void scheduled_launch(void* self, caf::execution_unit* unit, bool lazy, bool hide) {
  static const auto call =
    original<void (*)(void*, caf::execution_unit*, bool, bool)>(SCHEDULED("6launchEPNS_14execution_unitEbb"));
  __tsan_release(self);
  call(self, unit, lazy, hide);
}

// caf::scheduled_actor::resume(execution_unit*, size_t), by its own name and as the scheduler calls it
caf::resumable::resume_result scheduled_resume(void* self, caf::execution_unit* unit, std::size_t most) asm(
  SCHEDULED("6resumeEPNS_14execution_unitEm"));
caf::resumable::resume_result scheduled_resume(void* self, caf::execution_unit* unit, std::size_t most) {
  static const auto call =
    original<caf::resumable::resume_result (*)(void*, caf::execution_unit*, std::size_t)>(
      SCHEDULED("6resumeEPNS_14execution_unitEm"));
  __tsan_acquire(self);
  const auto result = call(self, unit, most);
  // A finished actor may be gone already; nobody resumes it again.
  if (result != caf::resumable::done)
    __tsan_release(self);
  return result;
}

caf::resumable::resume_result thunk_resume(void* base, caf::execution_unit* unit, std::size_t most) asm(
  "_ZThn160_N3caf15scheduled_actor6resumeEPNS_14execution_unitEm");
caf::resumable::resume_result thunk_resume(void* base, caf::execution_unit* unit, std::size_t most) {
  return scheduled_resume(static_cast<std::byte*>(base) - resumable_offset, unit, most);
}

// caf::scheduled_actor::activate(execution_unit*): an actor's first function. What it and the messages below
// leave behind is told at once, not at the end of resume(): the next resume may begin as soon as the mailbox
// is empty.
bool scheduled_activate(void* self, caf::execution_unit* unit) asm(
  SCHEDULED("8activateEPNS_14execution_unitE"));
bool scheduled_activate(void* self, caf::execution_unit* unit) {
  static const auto call =
    original<bool (*)(void*, caf::execution_unit*)>(SCHEDULED("8activateEPNS_14execution_unitE"));
  const auto result = call(self, unit);
  __tsan_release(self);
  return result;
}

// caf::scheduled_actor::mailbox_visitor::operator()(mailbox_element&): one message, which may have arrived
// while the actor was running. The visitor's first member is the actor.
int scheduled_visit(void** visitor, caf::mailbox_element& element) asm(
  SCHEDULED("15mailbox_visitorclERNS_15mailbox_elementE"));
int scheduled_visit(void** visitor, caf::mailbox_element& element) {
  static const auto call =
    original<int (*)(void**, caf::mailbox_element&)>(SCHEDULED("15mailbox_visitorclERNS_15mailbox_elementE"));
  const auto self = *visitor;
  __tsan_acquire(self);
  const auto result = call(visitor, element);
  __tsan_release(self);
  return result;
}

// caf::scheduled_actor::cleanup(error&&, execution_unit*): destroys messages that came too late to be read
bool scheduled_cleanup(void* self, caf::error&& why, caf::execution_unit* unit) asm(
  SCHEDULED("7cleanupEONS_5errorEPNS_14execution_unitE"));
bool scheduled_cleanup(void* self, caf::error&& why, caf::execution_unit* unit) {
  static const auto call = original<bool (*)(void*, caf::error&&, caf::execution_unit*)>(
    SCHEDULED("7cleanupEONS_5errorEPNS_14execution_unitE"));
  __tsan_acquire(self);
  return call(self, std::move(why), unit);
}

// caf::intrusive_ptr_release(actor_control_block*)
void release_strong(void* block) asm("_ZN3caf21intrusive_ptr_releaseEPNS_19actor_control_blockE");
void release_strong(void* block) {
  static const auto call =
    original<void (*)(void*)>("_ZN3caf21intrusive_ptr_releaseEPNS_19actor_control_blockE");
  __tsan_release(block);
  __tsan_acquire(block);
  call(block);
}

} // extern "C"
