@0xb1c0a5f6d2e94710;
# What nodes tell each other about themselves. Letters between actors have the schemas in messages/.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("godwit::schema");

struct ModelFingerprint {
  model @0 :Text;
  fingerprint @1 :Text;              # of weights, quantisation, kernels, KV layout, tokenizer and template
}

struct Hello {
  # Begins a conversation: one way from a node to another.
  protocolMajor @0 :UInt16;
  protocolMinor @1 :UInt16;
  node @2 :Text;
  incarnation @3 :UInt64;            # rises with each start of the node
  session @4 :UInt64;                # the sender's number of this conversation; all its frames carry it
  seen @5 :UInt64;                   # the receiver's number that the sender knows; 0 is none
  software @6 :Text;
  hashMode @7 :Text;                 # how blocks of the KV cache are named
  models @8 :List(ModelFingerprint);
}

struct Failure {
  message @0 :Text;
  param @1 :Text;
  reason @2 :Text;
}

struct Beat {
  count @0 :UInt64;                  # the sender's beats in this conversation
  echo @1 :UInt64;                   # the last beat of the receiver that came
  echoAgeMicros @2 :UInt64;          # how long ago it came
  bulk @3 :UInt64;                   # messages in bulk that came of the receiver's conversation
}
