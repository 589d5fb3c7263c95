@0xc4d1b7e39a50f218;
# Prompts that one node computes for another, and their blocks on the way between the two. An order has a number that
# whoever places it draws at random: it is never used twice, so that what is late meets nothing of another one.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("godwit::schema");

struct PromptOrder {
  # A prompt to be computed. Its blocks are kept for whoever ordered it.
  transfer @0 :UInt64;
  salt @1 :UInt64;                   # with the number, of this the names and checksums of the transfer's blocks are made
  tenant @2 :Text;
  tokens @3 :List(UInt32);           # whole blocks, and one token more
  priority @4 :Int32;
  leaseMs @5 :UInt32;                # for so long the blocks are kept when nothing is heard of whoever ordered them
}

struct PromptReady {
  transfer @0 :UInt64;
  blocks @1 :UInt32;                 # that can be fetched, from the first on
  cachedTokens @2 :UInt32;           # of their tokens, those that were found and not computed
}

struct PromptFetch {
  # Asks for blocks, and renews the lease; count may be 0.
  transfer @0 :UInt64;
  first @1 :UInt32;
  count @2 :UInt32;
}

struct BlockSeal {
  # By what a block is known to be the one that was asked for, whole.
  nameLow @0 :UInt64;                # over model, KV layout, tenant and all tokens up to the block's end
  nameHigh @1 :UInt64;
  checkLow @2 :UInt64;               # XXH3-128 over name, place and pages
  checkHigh @3 :UInt64;
}

struct PromptBlocks {
  # The pages of each block are an attachment.
  transfer @0 :UInt64;
  first @1 :UInt32;
  seals @2 :List(BlockSeal);
}

struct PromptRelease {
  # Nobody wants these any more: what is computed for them stops, and their blocks are let go.
  transfers @0 :List(UInt64);
}

struct PromptBrought {
  # In place of the cache's last answer to a look-up, when another node has what follows: what the cache has found. Then,
  # in an answer of its own, what came from that node.
  request @0 :UInt64;
  first @1 :UInt32;                  # blocks of the prompt before these
  blocks @2 :List(UInt32);           # on the device; a reference of each is handed over; may be none
  computed @3 :UInt32;               # so many of all that there are now were computed for this very request
  host @4 :UInt32;                   # of `blocks`, so many came from host memory, here or on another node
  disk @5 :UInt32;                   # and these, behind them, from the cold tier here
  elsewhere @6 :UInt32;              # blocks that another node has behind these; above 0 another answer follows
  patienceMs @7 :UInt32;             # after so long that is not to be waited for
}

struct PromptSource {
  # A node that computes prompts for others.
  name @0 :Text;
  there @1 :Bool;                    # or no more
}

struct CacheHold {
  # What is on the device of a text, with a reference of each block, without asking for it as a request does.
  request @0 :UInt64;                # of whoever asks; in the answer too
  tenant @1 :Text;
  tokens @2 :List(UInt32);
}

struct CacheRoom {
  # Gives up blocks that nobody uses and no pin holds, at once.
  blocks @0 :UInt32;
}
