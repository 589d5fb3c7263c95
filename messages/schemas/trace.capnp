@0x9f6d3a1c5be84e27;
# What an operator sees of an actor's letters: never what they say.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("godwit::schema");

struct TraceRequest {
  actor @0 :Text;                    # a part of the node, as its status names it, or a session's id
  letters @1 :UInt32;                # end when so many have come
  milliseconds @2 :UInt32;           # or so much time has passed
  tenant @3 :Text;                   # whose session; another tenant's is not found
}

struct TracedLetter {
  microseconds @0 :UInt64;           # since the trace began
  kind @1 :Text;                     # letter, request, answer
  types @2 :Text;                    # of its parts
  bytes @3 :UInt64;                  # of its letters, with attachments
  from @4 :Text;                     # what sent it; empty: the traced actor, or nothing that is an actor
  to @5 :Text;                       # where the traced actor sent it; empty: it came to the traced actor
}

struct Trace {
  actor @0 :Text;
  letters @1 :List(TracedLetter);    # in their order, those that came and those that it sent
  milliseconds @2 :UInt64;           # that it took
}
