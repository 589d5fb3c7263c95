@0x9f6d3a1c5be84e27;
# What an operator sees of an actor's letters: never what they say.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("godwit::schema");

struct TraceRequest {
  actor @0 :Text;                    # a part of the node, as its status names it
  letters @1 :UInt32;                # end when so many have come
  milliseconds @2 :UInt32;           # or so much time has passed
}

struct TracedLetter {
  microseconds @0 :UInt64;           # since the trace began
  kind @1 :Text;                     # letter, request, answer
  types @2 :Text;                    # of its parts
  bytes @3 :UInt64;                  # of its letters, with attachments
  from @4 :Text;                     # what sent it; empty: outside of any actor
}

struct Trace {
  actor @0 :Text;
  letters @1 :List(TracedLetter);    # in the order in which they came
  milliseconds @2 :UInt64;           # that it took
}
