# SPDX-License-Identifier: Apache-2.0
"""The ids of byte-level BPE against those of `tokenizers`, with a vocabulary trained here on tinyshakespeare (without
it, on this repository's documents) and with every pre-tokenizer that a tokenizer.json may have."""
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
    print("no tinyshakespeare: trained on this repository's documents", file=sys.stderr)
    return "".join(each.read_text(encoding="utf-8") for each in sorted((HOUSE / "docs").rglob("*.md")))


def ours(file, texts):
    """Our results for texts with a tokenizer.json, given as an object: ids, and whether they decode to the text."""
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
        words = ["the", "th", "he", "in"] * 1000  # test_every_character needs them, with any corpus
        cls.trained = token_texts.train([cls.corpus, *words, *token_texts.TEXTS[2:15]], 2000)

    def compare(self, file, texts):
        theirs = tokenizers.Tokenizer.from_str(json.dumps(file))
        answers = ours(file, texts)
        self.assertEqual(len(answers), len(texts))
        for text, answer in zip(texts, answers):
            expected = theirs.encode(text, add_special_tokens=False).ids
            self.assertEqual(answer.get("ids"), expected, f"{text[:80]!r}: {answer.get('error')}")
            self.assertEqual(answer["same"], theirs.decode(expected, skip_special_tokens=False) == text, repr(text[:80]))

    def test_every_pre_tokenizer(self):
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
        """Each code point (a few of the private planes). With this expression the kind of the character decides whether
        the words "the" and "in" next to it stay whole, and so the ids. The ids must be right, or the character is
        refused because our Unicode tables are too old; a character in the tables is never refused."""
        file = copy.deepcopy(self.trained)
        self.assertTrue({"the", "th", "he", "in"} <= file["model"]["vocab"].keys())
        file["pre_tokenizer"] = token_texts.sequence(token_texts.split(r"\p{L}t|\p{N}th|\si"), token_texts.byte_level())
        points = [c for c in (*range(0x40000), *range(0xE0000, 0xE0200), 0xF0000, 0x10FFFF) if not 0xD800 <= c < 0xE000]
        texts = [f"{chr(c)}the{chr(c)}in" for c in points]
        theirs = tokenizers.Tokenizer.from_str(json.dumps(file))
        expected = [each.ids for each in theirs.encode_batch(texts, add_special_tokens=False)]
        answers = ours(file, texts)
        wrong = [hex(c) for c, answer, ids in zip(points, answers, expected) if answer.get("ids", ids) != ids]
        self.assertEqual(wrong, [])
        refused = [hex(c) for c, answer in zip(points, answers) if "error" in answer and unicodedata.category(chr(c)) != "Cn"]
        known = unicodedata.unidata_version.partition(".")[0]  # Python's tables may be newer than ours, which are Debian 12's
        self.assertLess(len(refused), 1 if int(known) <= 14 else 11000, refused[:5])


if __name__ == "__main__":
    unittest.main()
