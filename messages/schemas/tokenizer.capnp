@0xb1c0a5f6d2e94701;
# What the tokenizer actor is asked and answers.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("godwit::schema");

struct EncodeRequest {
  text @0 :Data;            # UTF-8 in good faith: bytes that are not UTF-8 are encoded all the same
  special @1 :Bool;         # recognise special tokens in the text
}

struct DecodeRequest {
  ids @0 :List(UInt32);
  special @1 :Bool;         # print special tokens instead of leaving them out
}

struct TokenIds {
  ids @0 :List(UInt32);
}

struct DecodedText {
  text @0 :Data;
}

struct ChatMessage {
  role @0 :Text;
  content @1 :Text;
  name @2 :Text;
  json @3 :Text;            # the whole message as the client sent it, for templates that read more than role and content
}

struct RenderRequest {
  messages @0 :List(ChatMessage);
  addGenerationPrompt @1 :Bool = true;
  textOnly @2 :Bool;        # the answer needs no ids
}

struct RenderedChat {
  text @0 :Data;
  ids @1 :List(UInt32);
}
