# SPDX-License-Identifier: Apache-2.0
"""The ids of byte-level BPE against those of `tokenizers`, with a vocabulary trained here on tinyshakespeare (or, without
it, on the house's own pages) and with every way of cutting text that a tokenizer.json may ask for."""
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unicodedata
import unittest

HOUSE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HOUSE / "tests" / "golden"))
import packages  # noqa: F401
import token_texts
import tokenizers

PROGRAM = os.environ["STOKER_TOKEN_IDS"]


def corpus():
    shakespeare = pathlib.Path(os.environ.get("STOKER_DATA", "")) / "tinyshakespeare" / "input.txt"
    if shakespeare.is_file():
        return shakespeare.read_text(encoding="utf-8")
    print("tinyshakespeare is not there: trained on the house's own pages", file=sys.stderr)
    return "".join(each.read_text(encoding="utf-8") for each in sorted((HOUSE / "docs").rglob("*.md")))


def ours(file, texts):
    """Our answers for texts with a tokenizer.json given as an object: ids and whether they decode to the text."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tokenizer.json"
        path.write_text(json.dumps(file), encoding="utf-8")
        done = subprocess.run([PROGRAM, path], input="".join(json.dumps(each) + "\n" for each in texts), text=True,
                              capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


class Ids(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.corpus = corpus()
        cls.trained = token_texts.train([cls.corpus, *token_texts.TEXTS[2:15]], 2000)

    def compare(self, file, texts):
        theirs = tokenizers.Tokenizer.from_str(json.dumps(file))
        answers = ours(file, texts)
        self.assertEqual(len(answers), len(texts))
        for text, answer in zip(texts, answers):
            expected = theirs.encode(text, add_special_tokens=False).ids
            self.assertEqual(answer.get("ids"), expected, f"{text[:80]!r}: {answer.get('error')}")
            self.assertEqual(answer["same"], theirs.decode(expected, skip_special_tokens=False) == text, repr(text[:80]))

    def test_every_way_of_cutting(self):
        pieces = [self.corpus[:30000], *token_texts.TEXTS]
        for name, cut in token_texts.CUTS.items():
            for ignore_merges in (False, True):
                with self.subTest(cut=name, ignore_merges=ignore_merges):
                    file = copy.deepcopy(self.trained)
                    file["pre_tokenizer"] = cut
                    file["model"]["ignore_merges"] = ignore_merges
                    self.compare(file, pieces)

    def test_the_whole_corpus_and_both_spellings_of_merges(self):
        self.compare(self.trained, [self.corpus])
        file = copy.deepcopy(self.trained)
        merges = [each if isinstance(each, list) else each.split(" ") for each in file["model"]["merges"]]
        for spelled in (merges, [" ".join(each) for each in merges]):
            file["model"]["merges"] = spelled
            self.compare(file, token_texts.TEXTS)

    def test_added_tokens(self):
        file = token_texts.with_added(copy.deepcopy(self.trained))
        for cut in ("gpt2", "prefix", "gpt4"):
            file["pre_tokenizer"] = token_texts.CUTS[cut]
            self.compare(file, token_texts.TEXTS)

    def test_every_character(self):
        """Each code point between letters and digits, so that its kind decides the cut. Those that our Unicode tables are
        too old for must be refused, and no others."""
        texts = [f"a{chr(c)}b1{chr(c)}2 {chr(c)}" for c in range(0x110000)
                 if unicodedata.category(chr(c)) not in ("Cs", "Cn")]
        theirs = tokenizers.Tokenizer.from_str(json.dumps(self.trained))
        expected = [each.ids for each in theirs.encode_batch(texts, add_special_tokens=False)]
        answers = ours(self.trained, texts)
        refused = [text for text, answer in zip(texts, answers) if "error" in answer]
        wrong = [text for text, answer, ids in zip(texts, answers, expected) if answer.get("ids", ids) != ids]
        self.assertEqual(wrong, [])
        self.assertLessEqual(len(refused), 0 if unicodedata.unidata_version <= "14.0.0" else 11000, refused[:5])


if __name__ == "__main__":
    unittest.main()
