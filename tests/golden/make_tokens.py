# SPDX-License-Identifier: Apache-2.0
"""Writes tokens.json: a small trained tokenizer.json, texts, and their ids from the library `tokenizers`, for several
pre-tokenizers.

Run with tokenizers (last run with 0.23.3):  PYTHONPATH=$(tools/python_packages) python3 tests/golden/make_tokens.py
"""
import copy
import json
import pathlib

import token_texts
from tokenizers import Tokenizer

trained = token_texts.train(token_texts.TEXTS[2:15] * 2 + ["the then these there"] * 4, 339)
cases = []
for name in ("gpt2", "prefix", "gpt4", "gpt4o", "digits", "literal", "empty"):
    file = copy.deepcopy(trained)
    file["pre_tokenizer"] = token_texts.CUTS[name]
    file["model"]["ignore_merges"] = name == "gpt4"
    if name in ("gpt2", "prefix"):
        token_texts.with_added(file)
    theirs = Tokenizer.from_str(json.dumps(file))
    changes = {"pre_tokenizer": file["pre_tokenizer"], "added_tokens": file["added_tokens"],
               "ignore_merges": file["model"]["ignore_merges"]}
    ids = [theirs.encode(text, add_special_tokens=False).ids for text in token_texts.TEXTS]
    cases.append({"name": name, "changes": changes, "ids": ids,
                  "decoded": [theirs.decode(each, skip_special_tokens=False) for each in ids]})

lines = [f'"tokenizer": {json.dumps(trained)}', f'"texts": {json.dumps(token_texts.TEXTS)}']
lines.append('"cases": [\n' + ",\n".join(json.dumps(case) for case in cases) + "\n]")
(pathlib.Path(__file__).parent / "tokens.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
