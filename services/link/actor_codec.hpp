#pragma once

// From the typed interfaces of messages/catalogue.hpp to frames and back, for every signature there is:
// letters, and what may stand beside one: atoms, texts, a truth value, handles of actors. A new message type
// needs nothing here.

#include "messages/check.hpp"
#include "messages/letter.hpp"
#include "services/link/receiver.hpp"

#include <caf/actor_cast.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/atom.hpp>
#include <caf/message.hpp>
#include <caf/replies_to.hpp>
#include <caf/type_erased_tuple.hpp>
#include <caf/typed_actor.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace godwit::link {

struct interface_codec;

/// An actor as frames name it.
struct actor_reference {
  bool yours = false; ///< of the receiving node; otherwise of the sending one
  std::uint64_t id = 0;
  std::string name; ///< with `yours`, instead of an id
};

/// Turns handles into references and back; knows the node at the other end.
class reference_table {
 public:
  virtual ~reference_table() = default;
  virtual result<actor_reference> give(const caf::strong_actor_ptr& actor, const interface_codec& as) = 0;
  virtual result<caf::strong_actor_ptr> take(const actor_reference& named, const interface_codec& as) = 0;
};

/// A message of CAF on its way to a frame. `words` lie in the letter that was packed.
struct packed_message {
  std::uint64_t type = 0;
  std::span<const std::byte> words;
  std::vector<attachment> attachments;
  std::vector<std::byte> extras;
};

/// Reads extras one after the other.
class extras_reader {
 public:
  explicit extras_reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  /// The next entry, if it is of this kind.
  result<std::span<const std::byte>> next(std::uint8_t kind);
  bool done() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

void append_extra(std::vector<std::byte>& extras, std::uint8_t kind, std::span<const std::byte> bytes);
std::vector<std::byte> encode_reference(const actor_reference& reference);
result<actor_reference> decode_reference(std::span<const std::byte> bytes);
/// Attachments as a letter keeps them.
std::vector<attachment> copy_attachments(std::span<const received_frame> frames);

/// Mixes a number into another (SplitMix64's finaliser).
constexpr std::uint64_t mix(std::uint64_t seed, std::uint64_t value) {
  auto z = (seed ^ value) + 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111eb;
  return z ^ (z >> 31U);
}

/// One list of elements: what a handler takes, or what it answers.
struct message_codec {
  std::uint64_t type = 0; ///< of a single letter its schema id; otherwise mixed from the elements
  bool (*matches)(const caf::type_erased_tuple&) = nullptr;
  result<packed_message> (*pack)(const caf::type_erased_tuple&, reference_table&) = nullptr;
  result<caf::message> (*unpack)(const incoming&, reference_table&) = nullptr;
};

struct signature_codec {
  message_codec in;
  message_codec out;
};

/// All that an actor answers.
struct interface_codec {
  std::vector<signature_codec> signatures;

  const signature_codec* find(std::uint64_t type) const {
    for (const auto& each : signatures)
      if (each.in.type == type)
        return &each;
    return nullptr;
  }
  const signature_codec* match(const caf::type_erased_tuple& content) const {
    for (const auto& each : signatures)
      if (each.in.matches(content))
        return &each;
    return nullptr;
  }
};

/// The codec of a typed handle, made once.
template <class Interface>
const interface_codec& codec_of();

namespace detail {

// Kinds of extras, and what stands for them in a type's number.
constexpr std::uint8_t text_kind = 1;
constexpr std::uint8_t truth_kind = 2;
constexpr std::uint8_t actor_kind = 3;

/// Of one element.
template <class T>
struct element;

template <class Schema>
struct element<letter<Schema>> {
  static constexpr bool is_letter = true;
  static std::uint64_t type() { return capnp::typeId<Schema>(); }
  static result<void> pack(const letter<Schema>& value, packed_message& out, reference_table&) {
    out.words = value.bytes();
    out.attachments = value.attachments();
    return {};
  }
  static result<letter<Schema>> unpack(const incoming& mail, extras_reader&, reference_table&) {
    return letter<Schema>::parse(mail.words, copy_attachments(mail.attachments));
  }
};

template <caf::atom_value Value>
struct element<caf::atom_constant<Value>> {
  static constexpr bool is_letter = false;
  static std::uint64_t type() { return static_cast<std::uint64_t>(Value); }
  static result<void> pack(const caf::atom_value&, packed_message&, reference_table&) { return {}; }
  static result<caf::atom_value> unpack(const incoming&, extras_reader&, reference_table&) { return Value; }
};

template <>
struct element<std::string> {
  static constexpr bool is_letter = false;
  static std::uint64_t type() { return text_kind; }
  static result<void> pack(const std::string& value, packed_message& out, reference_table&) {
    append_extra(out.extras, text_kind, std::as_bytes(std::span(value)));
    return {};
  }
  static result<std::string> unpack(const incoming&, extras_reader& in, reference_table&) {
    const auto bytes = in.next(text_kind);
    if (!bytes)
      return fail(bytes);
    return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  }
};

template <>
struct element<bool> {
  static constexpr bool is_letter = false;
  static std::uint64_t type() { return truth_kind; }
  static result<void> pack(const bool& value, packed_message& out, reference_table&) {
    const std::byte byte{value};
    append_extra(out.extras, truth_kind, {&byte, 1});
    return {};
  }
  static result<bool> unpack(const incoming&, extras_reader& in, reference_table&) {
    const auto bytes = in.next(truth_kind);
    if (!bytes)
      return fail(bytes);
    if (bytes->size() != 1)
      return fail(errc::corrupt, "a truth value is not a byte");
    return bytes->front() != std::byte{0};
  }
};

template <class... Signatures>
struct element<caf::typed_actor<Signatures...>> {
  using handle = caf::typed_actor<Signatures...>;
  static constexpr bool is_letter = false;
  static std::uint64_t type() { return actor_kind; }
  static result<void> pack(const handle& value, packed_message& out, reference_table& table) {
    const auto named = table.give(caf::actor_cast<caf::strong_actor_ptr>(value), codec_of<handle>());
    if (!named)
      return fail(named);
    append_extra(out.extras, actor_kind, encode_reference(*named));
    return {};
  }
  static result<handle> unpack(const incoming&, extras_reader& in, reference_table& table) {
    const auto bytes = in.next(actor_kind);
    const auto named = bytes ? decode_reference(*bytes) : result<actor_reference>(fail(bytes));
    if (!named)
      return fail(named);
    auto actor = table.take(*named, codec_of<handle>());
    if (!actor)
      return fail(actor);
    return caf::actor_cast<handle>(std::move(*actor));
  }
};

/// What CAF keeps of an element in a message.
template <class T>
struct stored {
  using type = T;
};
template <caf::atom_value Value>
struct stored<caf::atom_constant<Value>> {
  using type = caf::atom_value;
};

template <class... Ts>
struct list_codec {
  static_assert((std::size_t{element<Ts>::is_letter} + ... + 0) <= 1, "a message has one letter at most");

  static std::uint64_t type() {
    if constexpr (sizeof...(Ts) == 1 && (element<Ts>::is_letter && ...))
      return (element<Ts>::type(), ...);
    std::uint64_t out = sizeof...(Ts);
    ((out = mix(out, element<Ts>::type())), ...);
    return out;
  }

  static bool matches(const caf::type_erased_tuple& content) { return content.match_elements<Ts...>(); }

  static result<packed_message> pack(const caf::type_erased_tuple& content, reference_table& table) {
    packed_message out;
    out.type = type();
    result<void> done;
    std::size_t place = 0;
    [[maybe_unused]] const auto one = [&]<class T>(std::type_identity<T>) {
      const auto& value = content.get_as<typename stored<T>::type>(place++);
      if (done)
        done = element<T>::pack(value, out, table);
    };
    (one(std::type_identity<Ts>{}), ...);
    if (!done)
      return fail(done);
    return out;
  }

  static result<caf::message> unpack(const incoming& mail, reference_table& table) {
    extras_reader in(mail.header.extras);
    result<void> done;
    [[maybe_unused]] const auto one = [&]<class T>(std::type_identity<T>) -> typename stored<T>::type {
      if (done) {
        auto value = element<T>::unpack(mail, in, table);
        if (value)
          return std::move(*value);
        done = fail(value);
      }
      return {};
    };
    // In braces the elements are read in their order.
    std::tuple<typename stored<Ts>::type...> values{one(std::type_identity<Ts>{})...};
    if (!done)
      return fail(done);
    if (!in.done())
      return fail(errc::corrupt, "a message has more elements than its signature");
    if constexpr (sizeof...(Ts) == 0)
      return caf::message{};
    else
      return std::apply([](auto&... each) { return caf::make_message(std::move(each)...); }, values);
  }

  static message_codec codec() { return {type(), &matches, &pack, &unpack}; }
};

template <class Signature>
struct signature_of;

template <class... Ins, class... Outs>
struct signature_of<caf::typed_mpi<caf::detail::type_list<Ins...>, caf::output_tuple<Outs...>>> {
  static signature_codec codec() { return {list_codec<Ins...>::codec(), list_codec<Outs...>::codec()}; }
};

template <class... Ins>
struct signature_of<caf::typed_mpi<caf::detail::type_list<Ins...>, caf::output_tuple<void>>> {
  static signature_codec codec() { return {list_codec<Ins...>::codec(), list_codec<>::codec()}; }
};

template <class Interface>
struct interface_of;

template <class... Signatures>
struct interface_of<caf::typed_actor<Signatures...>> {
  static interface_codec make() {
    interface_codec made{{signature_of<Signatures>::codec()...}};
    for (std::size_t i = 0; i < made.signatures.size(); ++i)
      GODWIT_CHECK(made.find(made.signatures[i].in.type) == &made.signatures[i]); // two with one number
    return made;
  }
};

} // namespace detail

template <class Interface>
const interface_codec& codec_of() {
  static const auto made = detail::interface_of<Interface>::make();
  return made;
}

} // namespace godwit::link
