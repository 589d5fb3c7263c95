#!/usr/bin/env python3
"""Writes splits.json: how the Python package `tokenizers` (0.23.3) cuts texts into words.

  python3 -m venv /tmp/venv && /tmp/venv/bin/pip install tokenizers==0.23.3
  /tmp/venv/bin/python tests/golden/pre_tokenizer/make.py

The pre-tokenizers are built as the models' tokenizer.json files have them; "default" is llama.cpp's, rebuilt from its four
patterns. Texts stay within Unicode 14, so that the age of a Unicode table decides nothing.
"""

import json
import pathlib
import random

from tokenizers import Regex
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def split(pattern):
    return Split(Regex(pattern), "isolated")


KINDS = {
    "gpt-2": ByteLevel(add_prefix_space=False),
    "smollm": Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]),
    "llama-bpe": split(LLAMA3),
    "qwen2": split(QWEN2),
    "default": Sequence([split(r"[\p{P}\$\+<=>\^~\|]+"), split(GPT2), split(r"\p{N}+"), split(r"[0-9][0-9][0-9]")]),
}

TEXTS = [
    "Hello, world!", " leading", "trailing ", "two  spaces   three", "tabs\tand\nnewlines\r\n\n\nend", "\r\n \r\n  x",
    "don't can't we'll I'm they've he'd it's O'Neil's", "DON'T CAN'T WE'LL I'M THEY'VE HE'D IT'S", "'s't're've'm'll'd",
    "it'\u017f 'S\u017f", "x'", "''s", " 's", "1234567890 12 1 1234", "3.14159e-10", "$1,299.00 + 7%", "\u0663\u0664\u0665\u0661",
    "\u2460\u2461\u2462\u2463 \u2167 \u00bd \u00b2", "a1b22c333d4444", "na\u00efve caf\u00e9 re\u0301sume\u0301", "\u041f\u0440\u0438\u0432\u0435\u0442, \u043a\u0430\u043a \u0434\u0435\u043b\u0430?",
    "\u4f60\u597d\uff0c\u4e16\u754c\uff01", "\u0939\u093f\u0928\u094d\u0926\u0940 \u092e\u0947\u0902", "\U0001f44b\U0001f3fd hi \U0001f469\u200d\U0001f469\u200d\U0001f467", "a\u00a0b\u2003c\u3000d\u2028e\u2029f\u0085g\u180eh\u200bi\ufeffj",
    "\u0085\u0085x", "\u180e\u180ex", "\u2003\u2003x", "   \n   \n  x  ", "\n\n\n", "\t\t\t", "     ", "", "a", "?!?! ... !!!\n\n!", "(nested [x] {y})\r\nz",
    "\x00nul\x1b[0m\x7f", "x_y_z camelCase <|im_start|>user", "\u00ab\u201cq\u201d\u00bb \u2013 \u2014 \u2026", "   1   22   333   4444", "==>~~|^^$$++",
    "\U0010ffff\U000e0001\ue000", "ab\u0300\u0301c", "\u1e9e\u0130\u0131'\u212a", "'LL 'rE 'Ve'd", "a\u2028\u2028b", "\r\r\n\n\r", " \n \t\n\t x\n y",
]


def random_texts():
    random.seed(7)
    pool = list("aZ'stmdrevl19.,!?$+<=>^~| \t\n\r\u00a0\u0085\u3000\u180e\u00e9\u0301\u00df\u0416\u4e2d\u0e01\u0967\u00bd\u2167\u20ac\u2014\U0001f642\u017f")
    return ["".join(random.choices(pool, k=random.randint(1, 24))) for _ in range(150)]


def main():
    out = [{"pre": name, "text": text, "words": [text[a:b] for _, (a, b) in kind.pre_tokenize_str(text)]}
           for text in TEXTS + random_texts() for name, kind in KINDS.items()]
    for case in out:
        assert "".join(case["words"]) == case["text"]
    path = pathlib.Path(__file__).with_name("splits.json")
    path.write_text("[\n" + ",\n".join(json.dumps(case) for case in out) + "\n]\n")


if __name__ == "__main__":
    main()
