@0xb1c0a5f6d2e94705;
# The records of a session's journal. A session is a pure function of them; nothing else is kept for ever.
# Rules of evolution: fields are only added; a reader refuses a union member it does not know.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("godwit::schema");

using Generation = import "generation.capnp";
using Session = import "session.capnp";
using Tokenizer = import "tokenizer.capnp";

struct Record {
  at @0 :Int64;                      # milliseconds since 1970 when it was written; shown, never decided upon
  union {
    opened @1 :Opened;
    accepted @2 :Accepted;
    claimed @3 :Claimed;
    released @4 :Released;
    toolOpened @5 :ToolOpened;
    toolResult @6 :ToolResult;
    cancelled @7 :Cancelled;
    turnEnded @8 :TurnEnded;
    forked @9 :Forked;
    closed @10 :Closed;
    prompted @11 :Prompted;
  }
}

struct Opened {
  settings @0 :Session.SessionSettings;
  fingerprint @1 :Text;              # of model, quantisation, kernels, KV layout, tokenizer and template
}

struct Accepted {
  turn @0 :UInt32;
  idempotencyKey @1 :Text;
  bodyHash @2 :Data;
  message @3 :Tokenizer.ChatMessage;
  cancelOnDisconnect @4 :Bool;
}

struct Claimed {
  node @0 :Text;
  incarnation @1 :Text;
  epoch @2 :UInt64;
  fingerprint @3 :Text;              # of the claiming node; another one than `opened` is a declared break
}

struct Prompted {
  # The prompt of a turn: the first `kept` tokens of the sequence so far (the prompt and answer of the turn before),
  # then `tokens`. A long prompt takes several records; it is complete when it has `length` tokens. Kept so that
  # tokens, once generated, are never made from text again, whatever the template becomes.
  turn @0 :UInt32;
  kept @1 :UInt32;
  tokens @2 :List(UInt32);
  length @3 :UInt32;
}

struct Released {
  turn @0 :UInt32;
  position @1 :UInt32;               # of the first token, in the sequence of the turn
  tokens @2 :List(Generation.SampledToken);
  promptTokens @3 :UInt32;           # length of the turn's prompt; the first record of a turn carries it
  cachedTokens @4 :UInt32;
  text @5 :Text;                     # what these tokens made certain of the answer's text; may be empty
  cachedHost @6 :UInt32;             # of cachedTokens, by the tier that had them; the rest was on the device
  cachedDisk @7 :UInt32;
}

struct ToolOpened {
  turn @0 :UInt32;
  call @1 :Text;
  name @2 :Text;
  arguments @3 :Text;
}

struct ToolResult {
  turn @0 :UInt32;
  call @1 :Text;
  content @2 :Text;
  idempotencyKey @3 :Text;
  bodyHash @4 :Data;
}

struct Cancelled {
  turn @0 :UInt32;
  cause @1 :Generation.EndCause;
}

struct TurnEnded {
  turn @0 :UInt32;
  reason @1 :Text;                   # stop, length, cancelled, failed
  usage @2 :Session.Usage;
  errorCode @3 :UInt8;               # godwit::errc when it failed
  errorMessage @4 :Text;
  text @5 :Text;                     # the answer's text that was held back until its end was certain
  errorReason @6 :Text;              # the API's word for the error, if it has one
  position @7 :UInt32;               # the length of the turn's sequence
}

struct Forked {
  parent @0 :Text;
  at @1 :UInt64;                     # the parent's last copied record
}

struct Closed {
  cause @0 :Text;
}
