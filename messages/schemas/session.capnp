@0xb1c0a5f6d2e94703;
# Sessions: what the gateway asks of the directory and of a session, and the events that come back.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("godwit::schema");

using Generation = import "generation.capnp";
using Tokenizer = import "tokenizer.capnp";

enum OnBusy {
  queue @0;
  reject @1;
  interrupt @2;
}

struct SessionSettings {
  # Fixed when a session is opened; part of its `opened` record.
  tenant @0 :Text;
  model @1 :Text;
  system @2 :Text;
  hasSystem @3 :Bool;
  sampling @4 :Generation.Sampling;
  maxTokens @5 :UInt32;              # per turn; 0 is up to the context
  stop @6 :List(Text);
  metadata @7 :Text;                 # a JSON object as text
  onBusy @8 :OnBusy;
  ttlSeconds @9 :UInt64;             # 0 is for ever
}

struct LocateRequest {
  session @0 :Text;
  tenant @1 :Text;                   # another tenant's session is not found
  hops @2 :UInt8;                    # nodes that have passed it on to the owner
}

struct ListRequest {
  tenant @0 :Text;
  limit @1 :UInt32 = 20;
  after @2 :Text;                    # a session id, or empty for the start
}

struct Usage {
  promptTokens @0 :UInt64;
  completionTokens @1 :UInt64;
  cachedTokens @2 :UInt64;
  cachedHost @3 :UInt64;             # of cachedTokens, by the tier that had them; the rest was on the device
  cachedDisk @4 :UInt64;
}

struct SessionInfo {
  id @0 :Text;
  status @1 :Text;                   # idle, running, waiting_tool, suspended, closed, quarantined
  settings @2 :SessionSettings;
  ownerNode @3 :Text;
  ownerEpoch @4 :UInt64;
  turns @5 :UInt32;
  usage @6 :Usage;
  kvDevice @7 :UInt64;               # tokens by tier; several may have the same
  kvHost @8 :UInt64;
  kvDisk @9 :UInt64;
  journalSequence @10 :UInt64;
  createdAt @11 :Int64;              # seconds since 1970
  expiresAt @12 :Int64;              # 0 is never
  forkedFrom @13 :Text;
  forkedAt @14 :Text;                # an event id of the parent
  queued @15 :UInt32;                # messages waiting behind the running turn
  oldestEvent @16 :Text;             # the first place that is kept; empty if the journal cannot tell
}

struct SessionList {
  sessions @0 :List(SessionInfo);
  hasMore @1 :Bool;
  next @2 :Text;                     # `after` of the next page; a page may be short although more follows
}

struct PostMessage {
  idempotencyKey @0 :Text;
  bodyHash @1 :Data;                 # of the canonical body: the same key with another hash is refused
  content @2 :Text;
  cancelOnDisconnect @3 :Bool;
}

struct MessageAccepted {
  turn @0 :UInt32;
  sequence @1 :UInt64;               # of the `accepted` record
  eventBefore @2 :Text;              # subscribing after this event gives the turn's events from the first
  replayed @3 :Bool;                 # the key was known: this is the stored answer
}

struct CancelTurn {
  turn @0 :UInt32;                   # 0 is the running one
  cause @1 :Generation.EndCause;     # clientLeft cancels only if the turn's message asked for that
}

struct TurnState {
  turn @0 :UInt32;
  status @1 :Text;                   # idle, running, cancelled, completed, failed
  sequence @2 :UInt64;
}

struct CloseSession {
  cause @0 :Text;                    # deleted, expired
}

struct ForkRequest {
  at @0 :Text;                       # an event id, or a turn's number; empty is the end
}

struct Transcript {
  messages @0 :List(Tokenizer.ChatMessage);
  running @1 :Bool;                  # the last message is still being written
}

struct SubscribeRequest {
  after @0 :Text;                    # an event id; empty is from the beginning
  snapshot @1 :Bool;                 # start with one snapshot event, then what comes after it
  credit @2 :UInt32 = 64;            # events that may be sent before more is granted
  onlyTurn @3 :UInt32;               # leave out other turns' events and end after this turn's last one; 0 is never
  pastOnly @4 :Bool;                 # end behind the last event that there is now
}

struct Subscribed {
  subscription @0 :UInt64;
}

struct EventCredit {
  subscription @0 :UInt64;
  events @1 :UInt32;
}

struct Unsubscribe {
  subscription @0 :UInt64;
  clientLeft @1 :Bool;               # cancels the subscription's turn if its message said so; false: the stream only moves
}

struct Event {
  id @0 :Text;
  type @1 :Text;
  data @2 :Text;                     # JSON; the same bytes whenever it is read
}

struct EventBatch {
  subscription @0 :UInt64;
  events @1 :List(Event);
  ended @2 :Bool;                    # nothing follows: the turn asked for is over, or the session is closed
  errorCode @3 :UInt8;               # godwit::errc when the stream had to end
  errorMessage @4 :Text;
}
