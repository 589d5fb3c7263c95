@0xb1c0a5f6d2e94706;
# Inside an engine: what prefill and decode ask of the device and of the cache, and what they tell each other and the
# router. A sequence has the id of its request.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("godwit::schema");

using Generation = import "generation.capnp";

enum StepRole {
  prefill @0;
  decode @1;
}

struct SequenceOpening {
  # A sequence for the device to keep.
  generate @0 :Generation.GenerateRequest;  # tokens are all so far
  arrival @1 :UInt64;                # among equal priorities the lower one goes first
  cachedBlocks @2 :List(UInt32);     # full blocks of its beginning; a reference of each is handed over
  cachedAtMost @3 :UInt32 = 0xffffffff;  # of those tokens, so many were not computed by this request itself
  cachedHost @4 :UInt32;             # of those tokens, so many were brought back from host memory; they come behind the device's own
  cachedDisk @5 :UInt32;             # and these from the cold tier, behind both
  holeAt @6 :UInt32;                 # tokens before a hole that a HoleFilling closes: no farther until then; 0: there is none
}

struct HoleFilling {
  # Blocks for the hole of an open sequence. Without any the hole is no more, and is computed.
  sequence @0 :UInt64;
  at @1 :UInt32;                     # tokens before it; all of them are computed
  blocks @2 :List(UInt32);           # from the cold tier; a reference of each is handed over
}

struct RowOffer {
  sequence @0 :UInt64;
  tokens @1 :UInt32;                 # at most so many of it in the next step
}

struct StepSubmission {
  # What a role wants in the next step; takes the place of what it wanted before.
  role @0 :StepRole;
  seen @1 :UInt64;                   # the last step whose result the sender knows
  openings @2 :List(SequenceOpening);
  rows @3 :List(RowOffer);
  fillings @4 :List(HoleFilling);
}

struct CloseSequences {
  sequences @0 :List(UInt64);        # unknown ones are no mistake
}

enum RowOutcome {
  computed @0;                       # some of the prompt; the rest is still to come
  sampled @1;                        # up to the last token, and the next one was chosen
  starved @2;                        # no pages; offer it again after BlocksFreed
  preempted @3;                      # its pages went to another one: the sequence is closed
  failed @4;                         # the sequence is closed
}

struct RowResult {
  sequence @0 :UInt64;
  outcome @1 :RowOutcome;
  prompt @2 :Bool;                   # nothing had been sampled from it before
  computed @3 :UInt32;               # tokens
  cachedTokens @4 :UInt32;           # with the first sample: tokens that were not computed but found
  position @5 :UInt32;               # of `token`
  token @6 :Generation.SampledToken;
  errorCode @7 :UInt8;
  errorMessage @8 :Text;
  cachedHost @9 :UInt32;             # of cachedTokens, by the tier that had them; the rest was on the device
  cachedDisk @10 :UInt32;
}

struct StepResult {
  # To be answered with a submission, an empty one if need be: the next step waits for it.
  step @0 :UInt64;
  rows @1 :List(RowResult);
}

struct BlocksFreed {
  # Starved rows may fit now.
}

struct CacheLookup {
  request @0 :UInt64;
  tenant @1 :Text;
  tokens @2 :List(UInt32);
  limit @3 :UInt32;                  # at most so many tokens are wanted
}

struct CacheFound {
  # The first answer to a look-up says what is on the device. If more is being brought there, others follow with that.
  request @0 :UInt64;
  blocks @1 :List(UInt32);           # from the first on, or from the end of the first answer on; a reference of each is handed over
  loading @2 :UInt32;                # blocks that are still being brought; above 0 another answer follows
  patienceMs @3 :UInt32;             # after so long, computing them would have been done
  waiting @4 :UInt32;                # blocks that a lower tier has and for which the device has no room now
  host @5 :UInt32;                   # of `blocks`, so many came from host memory
  disk @6 :UInt32;                   # and these, behind them, from the cold tier
  first @7 :UInt32;                  # blocks of the prompt before these
  gap @8 :UInt32;                    # in the first answer: blocks to be computed while the last ones are brought, which follow them;
  tail @9 :UInt32;                   # so many of `loading` are those last ones, and come in an answer of their own
}

struct CacheForgo {
  # Nobody waits any more for what is being loaded for these requests.
  requests @0 :List(UInt64);
}

struct CacheInsert {
  # Full blocks of a text, one behind the other.
  tenant @0 :Text;
  tokens @1 :List(UInt32);           # what is in them, from whoever has no names for them
  blocks @2 :List(UInt32);           # a reference of each is handed over
  parentLow @3 :UInt64;              # identity of the block that comes before them; both 0: they are the first ones
  parentHigh @4 :UInt64;
  swapped @5 :Bool;                  # of a sequence that had to give its pages up and will be back
  names @6 :List(UInt64);            # identities of the blocks: the low half of each, and its high half
}

struct CacheRelease {
  blocks @0 :List(UInt32);           # references that were found and not needed
}

struct CachePin {
  # Keeps what is known of a prefix for a while.
  tenant @0 :Text;
  tokens @1 :List(UInt32);
  seconds @2 :UInt32;                # at most a day
}

struct CachePinned {
  pin @0 :UInt64;
  blocks @1 :UInt32;                 # of the prefix that it holds
}

struct CacheUnpin {
  tenant @0 :Text;
  pin @1 :UInt64;                    # an unknown one is no mistake: its time may be over
}

struct CacheProbe {
  # What there is of a text, without asking for it.
  tenant @0 :Text;
  tokens @1 :List(UInt32);
}

struct CacheHoldings {
  # Tokens from the first on that each tier has; several may have the same.
  device @0 :UInt32;
  host @1 :UInt32;
  disk @2 :UInt32;
}

struct CacheSuspend {
  # Moves what is known of a text to the lowest tier and frees its pages, but those that others use.
  tenant @0 :Text;
  tokens @1 :List(UInt32);
}

struct CacheEvict {
  blocks @0 :UInt32;
}

struct CacheEvicted {
  blocks @0 :UInt32;                 # that are free now; fewer than asked means that there are no more
}

struct Recompute {
  # Decode lost the pages of a sequence and needs them again.
  request @0 :UInt64;
  tokens @1 :List(UInt32);           # all so far
}

struct StreamsEnded {
  requests @0 :List(UInt64);
}

struct WorkerReport {
  # What a worker tells the router of requests that it placed.
  prefilled @0 :List(UInt64);        # the first token is there
  ended @1 :List(UInt64);            # the last batch was sent
}

struct WorkerJoin {
  # A worker that the router may choose from now on.
  name @0 :Text;
  capacity @1 :UInt32;               # requests that it takes, running and waiting
}
