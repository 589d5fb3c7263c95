@0xb1c0a5f6d2e94704;
# What every actor can be asked.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("godwit::schema");

struct Gauge {
  name @0 :Text;
  value @1 :Float64;
}

struct ActorStatus {
  name @0 :Text;
  state @1 :Text;                    # starting, ready, draining, stopped
  reason @2 :Text;                   # why it is not ready
  gauges @3 :List(Gauge);
}

struct Drained {
  remaining @0 :UInt32;              # what was still running when the deadline came
}

struct NodeStatus {
  name @0 :Text;
  incarnation @1 :Text;
  state @2 :Text;
  roles @3 :List(Text);
  model @4 :Text;
  actors @5 :List(ActorStatus);
  startedAt @6 :Int64;
  fingerprint @7 :Text;              # of the model as it is served here
  version @8 :Text;                  # of the software
  capacity @9 :UInt32;               # requests that its worker takes, running and waiting
  link @10 :Text;                    # how the node that answers sees it: self, up, away
  why @11 :Text;                     # why it is not up
  roundTrip @12 :Float64;            # seconds
}

struct NodeList {
  nodes @0 :List(NodeStatus);        # in the order of their names
}
