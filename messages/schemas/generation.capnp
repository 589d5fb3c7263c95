@0xb1c0a5f6d2e94702;
# One generation: from a list of tokens to a stream of tokens under credit.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("godwit::schema");

struct TokenBias {
  token @0 :UInt32;
  bias @1 :Float32;
}

struct Sampling {
  # All of it together with the tokens before a position decides the token there.
  temperature @0 :Float32 = 1;       # 0 is greedy
  topK @1 :UInt32;                   # 0 is off
  topP @2 :Float32 = 1;
  minP @3 :Float32;
  repeatPenalty @4 :Float32 = 1;     # divides or multiplies logits of tokens seen in the window
  frequencyPenalty @5 :Float32;      # over generated tokens, as OpenAI defines it
  presencePenalty @6 :Float32;
  penaltyWindow @7 :UInt32 = 64;     # how many last tokens repeatPenalty looks at
  seed @8 :UInt64;
  bias @9 :List(TokenBias);
  topLogprobs @10 :UInt8;            # alternatives reported with each token
  logprobs @11 :Bool;                # report the log-probability of each token
}

struct GenerateRequest {
  request @0 :UInt64;
  tenant @1 :Text;                   # salts the identity of cached blocks
  model @2 :Text;
  tokens @3 :List(UInt32);           # the whole context: prompt and, when resumed, what was already released
  promptLength @4 :UInt32;           # first generated position; tokens from here on count for penalties
  maxTokens @5 :UInt32;              # how many more tokens may be generated
  sampling @6 :Sampling;
  stopTokens @7 :List(UInt32);       # beside the model's own end-of-generation tokens
  ignoreEnd @8 :Bool;                # go on over end-of-generation tokens
  credit @9 :UInt32 = 64;            # tokens that may be sent before the consumer grants more
  priority @10 :Int32;
  group @11 :UInt64;                 # requests that can be cancelled together; 0 is none
}

struct GenerateAccepted {
  request @0 :UInt64;
  worker @1 :Text;
  reason @2 :Text;                   # why the router chose it
}

enum FinishReason {
  none @0;                           # not finished
  stop @1;                           # an end-of-generation or stop token; it is the last of `tokens`
  length @2;                         # maxTokens, or the model's context, is used up
  cancelled @3;
  failed @4;
}

struct TokenLogprob {
  token @0 :UInt32;
  logprob @1 :Float32;
}

struct SampledToken {
  token @0 :UInt32;
  logprob @1 :Float32;
  top @2 :List(TokenLogprob);
}

struct TokenBatch {
  # Sent to the consumer of a generation. Positions rise without gap; exactly one batch has a finish reason, the last.
  request @0 :UInt64;
  position @1 :UInt32;               # of the first token here
  tokens @2 :List(SampledToken);
  finish @3 :FinishReason;
  errorCode @4 :UInt8;               # godwit::errc when finish is failed
  errorMessage @5 :Text;
  promptTokens @6 :UInt32;           # usage; in the first and the last batch
  cachedTokens @7 :UInt32;           # of the prompt, taken from the prefix cache
  cachedHost @8 :UInt32;             # of these, by the tier that had them; the rest was on the device
  cachedDisk @9 :UInt32;
}

struct CreditGrant {
  request @0 :UInt64;
  tokens @1 :UInt32;
}

enum EndCause {
  # Why something ends before its time; a shutdown must never look like a client's cancel.
  cancelled @0;
  deadline @1;
  peerLost @2;
  draining @3;
  overloaded @4;
  stopSequence @5;                   # the consumer found a stop string
  interrupted @6;                    # a newer message took the turn's place
  clientLeft @7;                     # the message asked for it: on_disconnect is cancel
  forked @8;                         # a fork begins in the middle of this turn
  closed @9;                         # the session was deleted or has expired
}

struct CancelRequest {
  requests @0 :List(UInt64);
  group @1 :UInt64;                  # all requests of this group too, unless 0
  cause @2 :EndCause;
}

struct RouteExplainRequest {
  request @0 :UInt64;
}
