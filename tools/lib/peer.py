"""One measurement of llama.cpp, for tools/peer-bench. Runs in an environment that has llama-cpp-python 0.3.16.

peer.py quantize MODEL TO
peer.py prefill|decode|verify MODEL THREADS TOKENS WIDTH   prints {"value": tokens/s}, or the ratio of the times for verify

What is measured is what `godwit bench` measures with one round: one pass that does not count, then one that does. Of attention
with and without llama.cpp's flash attention the better one counts.
"""
import ctypes
import json
import sys
import time

import llama_cpp as L

STEPS = 16  # as godwit bench decode
CHUNK = 512


@L.llama_log_callback
def quiet(*_):
    pass


def check(code):
    if code != 0:
        raise SystemExit(f"llama_decode returned {code}")


def fill(batch, i, token, position, sequence, logits):
    batch.token[i] = token
    batch.pos[i] = position
    batch.n_seq_id[i] = 1
    batch.seq_id[i][0] = sequence
    batch.logits[i] = logits


def feed(context, tokens, sequence=0, start=0, every=False):
    """Appends tokens to a sequence, with logits for the last one or for each."""
    for first in range(0, len(tokens), CHUNK):
        part = tokens[first:first + CHUNK]
        batch = L.llama_batch_init(len(part), 0, 1)
        for i, token in enumerate(part):
            fill(batch, i, token, start + first + i, sequence, every or first + i + 1 == len(tokens))
        batch.n_tokens = len(part)
        check(L.llama_decode(context, batch))
        L.llama_batch_free(batch)


def make_context(model, threads, tokens, sequences, flash):
    params = L.llama_context_default_params()
    params.n_ctx = tokens * sequences
    params.n_batch = params.n_ubatch = CHUNK
    params.n_seq_max = sequences
    params.n_threads = params.n_threads_batch = threads
    params.flash_attn = flash
    return L.llama_init_from_model(model, params)


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def cut(context, sequence, length):
    L.llama_memory_seq_rm(L.llama_get_memory(context), sequence, length, -1)


def prefill(context, tokens, length, _):
    def once(count):
        L.llama_memory_clear(L.llama_get_memory(context), True)
        return timed(lambda: feed(context, tokens[:count]))

    once(min(length, CHUNK))  # a long prompt takes half a minute; its first chunk warms up as well
    return length / once(length)


def decode(context, tokens, length, streams):
    for stream in range(streams):
        feed(context, tokens[:length], stream)
    batch = L.llama_batch_init(streams, 0, 1)

    def steps():
        for step in range(STEPS):
            for stream in range(streams):
                fill(batch, stream, tokens[step + stream], length + step, stream, True)
            batch.n_tokens = streams
            check(L.llama_decode(context, batch))

    def once():
        seconds = timed(steps)
        for stream in range(streams):
            cut(context, stream, length)
        return seconds

    once()
    return STEPS * streams / once()


def verify(context, tokens, length, width):
    feed(context, tokens[:length])

    def once(count):
        def steps():
            for _ in range(STEPS):
                feed(context, tokens[:count], 0, length, every=True)
                cut(context, 0, length)

        return timed(steps)

    for count in (1, width):
        once(count)
    return once(width) / once(1)


def main():
    kind, path = sys.argv[1:3]
    L.llama_backend_init()
    L.llama_log_set(quiet, ctypes.c_void_p(0))
    if kind == "quantize":
        params = L.llama_model_quantize_default_params()
        params.ftype = L.LLAMA_FTYPE_MOSTLY_Q4_0
        params.allow_requantize = True
        if L.llama_model_quantize(path.encode(), sys.argv[3].encode(), ctypes.byref(params)) != 0:
            raise SystemExit("the model could not be quantised")
        return
    threads, length, width = map(int, sys.argv[3:6])
    model = L.llama_model_load_from_file(path.encode(), L.llama_model_default_params())
    if not model:
        raise SystemExit("the model could not be loaded")
    vocabulary = L.llama_vocab_n_tokens(L.llama_model_get_vocab(model))
    state, tokens = 1, []
    for _ in range(length + width + STEPS):
        state = (state * 1664525 + 1013904223) % 2**32  # Numerical Recipes' generator, as in godwit bench
        tokens.append((state >> 8) % vocabulary)
    work = {"prefill": prefill, "decode": decode, "verify": verify}[kind]
    values = []
    for flash in (False, True):
        context = make_context(model, threads, length + width + STEPS + 32, width if kind == "decode" else 1, flash)
        if context:
            values.append(work(context, tokens, length, width))
            L.llama_free(context)
    if not values:
        raise SystemExit("no context could be made")
    print(json.dumps({"value": min(values) if kind == "verify" else max(values)}))


if __name__ == "__main__":
    main()
