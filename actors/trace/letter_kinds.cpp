#include "actors/trace/letter_kinds.hpp"

#include "messages/catalogue_handover.hpp"

#include <caf/atom.hpp>
#include <caf/detail/type_list.hpp>
#include <caf/error.hpp>
#include <caf/replies_to.hpp>
#include <caf/type_erased_tuple.hpp>
#include <caf/type_nr.hpp>
#include <caf/typed_actor.hpp>

#include <capnp/schema.h>

#include <typeindex>
#include <typeinfo>
#include <unordered_map>

namespace godwit {

namespace {

/// How to look at a letter of which only the type is known at run time.
struct looker {
  std::string name;
  std::size_t (*bytes)(const void*);
};
using lookers = std::unordered_map<std::type_index, looker>;

template <class T>
struct learn {
  static void element(lookers&) {}
};
template <class... Signatures>
struct learn<caf::typed_actor<Signatures...>> {
  static void element(lookers& all) {
    all.try_emplace(
      typeid(caf::typed_actor<Signatures...>), looker{"handle", [](const void*) { return std::size_t{0}; }});
  }
};
template <class Schema>
struct learn<letter<Schema>> {
  static void element(lookers& all) {
    const auto bytes = [](const void* where) {
      const auto& mail = *static_cast<const letter<Schema>*>(where);
      auto sum = mail.bytes().size();
      for (const auto& each : mail.attachments())
        sum += each->size();
      return sum;
    };
    all.try_emplace(
      typeid(letter<Schema>), looker{capnp::Schema::from<Schema>().getShortDisplayName().cStr(), bytes});
  }
};

template <class Signature>
struct learn_list;
template <class Interface>
struct learn_interface;
template <class... Ins, class... Outs>
struct learn_list<caf::typed_mpi<caf::detail::type_list<Ins...>, caf::output_tuple<Outs...>>> {
  static void all(lookers& into) {
    (learn<Ins>::element(into), ...);
    (learn<Outs>::element(into), ...);
  }
};

template <class... Signatures>
struct learn_interface<caf::typed_actor<Signatures...>> {
  static void all(lookers& into) { (learn_list<Signatures>::all(into), ...); }
};

template <class... Interfaces>
lookers learn_all() {
  lookers out;
  (learn_interface<Interfaces>::all(out), ...);
  return out;
}

} // namespace

message_kind kind_of(const caf::type_erased_tuple& content) {
  static const auto known =
    learn_all<common_actor, tokenizer_actor, router_actor, placement_actor, cache_actor, device_actor,
      prefill_actor, decode_actor, event_sink_actor, generation_sink_actor, session_actor, directory_actor,
      node_actor, cache_room_actor, intake_actor, prompt_desk_actor, prompt_fetch_actor>();
  message_kind out;
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (i > 0)
      out.types += " ";
    const auto [number, type] = content.type(i);
    if (number == caf::type_nr<caf::atom_value>::value) {
      out.types += caf::to_string(content.get_as<caf::atom_value>(i));
      continue;
    }
    if (number == caf::type_nr<caf::error>::value) {
      out.types += "error";
      continue;
    }
    if (number == caf::type_nr<std::string>::value) {
      out.types += "text";
      continue;
    }
    const auto found = type != nullptr ? known.find(*type) : known.end();
    if (found == known.end()) {
      out.types += "other";
      continue;
    }
    out.types += found->second.name;
    out.bytes += found->second.bytes(content.get(i));
  }
  return out;
}

} // namespace godwit
