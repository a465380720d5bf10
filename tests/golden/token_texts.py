# SPDX-License-Identifier: Apache-2.0
"""Difficult texts for tokenizers, and the pre-tokenizers of tokenizer.json files. Used by make_tokens.py and
tests/house/tokenizer_test.py."""
import json

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

GPT4 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+")
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TIKTOKEN = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]"
            r"|\s+(?!\S)|\s+")

TEXTS = [
    "",
    " ",
    "First Citizen:\nBefore we proceed any further, hear me speak.\n\n",
    "It's we're I've they'll he'd I'm don't IT'S WE'RE DON'T o'clock 'tis 'So' ''s it\u2019s L'\u017fs 's's",
    "0 7 42 1000 12345678 3.14159 1,000,000 \u0661\u0662\u0663 \u00bd \u2167 x2y3 2nd 0xFF",
    "  two  spaces   three\t\ttabs \n \n\n  \r\n\r\n trailing   ",
    "\u00a0nbsp\u00a0\u00a0x \u2003em \u3000wide \u0085nel \u2028ls\u2029ps \u200bzw \u180emvs \ufeffbom \u1680ogham",
    "\x00\x01\x02\x1b[0m \x7f \x0b\x0c\x1c\x1d\x1e\x1f end",
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f3f3\ufe0f\u200d\U0001f308 "
    "\U0001f1e9\U0001f1ea \U0001f44d\U0001f3fd\U0001f44d\U0001f3ff #\ufe0f\u20e3 \U0001fa77 \u2764\ufe0f",
    "\u4f60\u597d\uff0c\u4e16\u754c\uff01\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\u3002\ud55c\uad6d\uc5b4 \uff11\uff12\uff13 \U00020000\U0002a6d6",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645\u060c \u0643\u064e\u062a\u064e\u0628\u064e \u05e9\u05dc\u05d5\u05dd \u200f\u05d0\u200e a",
    "e\u0301 \u00e9 n\u0303 a\u0300\u0301\u0302 \u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u1e9b\u0323 \u212b\u00c5 z\u0351\u036b\u0343",
    "\u0414\u0435\u043d\u044c \u0393\u03b5\u03b9\u03ac \u00df\u00df \u0130I\u0131 \ufb03 \u01c5\u01c6 \ua7f7 \U0001d7d8\U0001d49c \u2460\u00b2",
    "def f(x):\n    return {'a': [1, 2]}  # done!!!???\n\thttps://a.b/c?d=e&f=%20\n<|end|>--- ...\u2026\u2014\n/\n//\r\n/",
    "a" * 300 + " " * 300 + "ab" * 200 + "\n" * 50 + "!" * 100,
    "\ufffd\ufffe\U0010ffff\ue000 \u00ad \u2060 \ufff9x",
    "caf\u00e9\u00e9 <s>Hi<s><|pad|> <|pad|>x<|pad|>x<|pad|<mask> <mask>the<<s>> zwq",
]


def train(pieces, vocabulary=500):
    """The tokenizer.json of byte-level BPE, trained on whole lines, so that tokens span words and every cut affects ids. It has
    one more token that no merges produce."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator([line for each in pieces for line in each.splitlines(True)], trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=["<|end|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    file = json.loads(made.to_str())
    file["pre_tokenizer"]["use_regex"] = True
    assert file["model"]["vocab"].setdefault("\u0120zwq", vocabulary) == vocabulary == len(file["model"]["vocab"]) - 1
    return file


def byte_level(prefix=False, regex=False):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def sequence(*each):
    return {"type": "Sequence", "pretokenizers": list(each)}


CUTS = {
    "gpt2": byte_level(regex=True),
    "prefix": byte_level(prefix=True, regex=True),
    "uncut": byte_level(),
    "gpt4": sequence(split(GPT4), byte_level()),
    "gpt4_removed": sequence(split(GPT4, "Removed", True), byte_level()),
    "gpt4o": sequence(split(GPT4O), byte_level()),
    "tiktoken": sequence(split(TIKTOKEN), byte_level()),
    "digits": sequence({"type": "Digits", "individual_digits": True}, byte_level(regex=True)),
    "numbers": sequence({"type": "Digits", "individual_digits": False}, byte_level(regex=True)),
    "literal": sequence(split(". ", kind="String"), split("e", "Removed", kind="String"), byte_level(prefix=True)),
    "empty": sequence(split("x*"), byte_level(prefix=True)),
}


def added(token, text, normalized, special):
    return {"id": token, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": normalized, "special": special}


def with_added(file):
    """Adds overlapping tokens of both kinds to the file; one of them is in the model's vocabulary."""
    size = len(file["model"]["vocab"])
    more = [("<s>", False, True), ("<s><|pad|>", True, False), ("<|pad|>", True, False), ("<|pad|>x", True, False),
            ("<mask>", False, False), ("\u00e9\u00e9", True, False)]
    own = file["model"]["vocab"]["the"]
    file["added_tokens"] += [added(own, "the", True, False)]
    file["added_tokens"] += [added(size + i, *each) for i, each in enumerate(more)]
    return file
