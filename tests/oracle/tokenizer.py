#!/usr/bin/env python3
"""Trains a small GPT-2 tokenizer with PyPI's `tokenizers` and writes what it makes of texts, for tests/data_text_test.cpp.

    python tests/oracle/tokenizer.py tests/data/data

writes vocab.json, merges.txt, and tokens.txt: `encode HEX ids`, `prefix HEX ids` and `decode ids HEX`, HEX being UTF-8.
"""

import pathlib
import random
import sys

from tokenizers import ByteLevelBPETokenizer

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TEXTS = [
    "", " ", "  ", "\n", "a", "Hello, world!", "Hello  world   and\tspaces \n\n end  ", "I'm you're they've it's we'll he'd don't 'tis",
    "naïve café Ünïcödé", "数字 1234 と 文字", "emoji 😀👍🏽 done", "٣٤٥ ½ Ⅷ", "a\u00a0b\u2003c\u3000d", "x=1;y=[2,3];", "    indented\n        more",
    "tabs\t\t\tand\r\nlines\r\n", "word" * 50, "!?" * 40, "\u0301combining e\u0301", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈", "zero\u200bwidth", "'S 'RE", " leading", "trailing ",
]


def random_text(draw):
    pools = ["abcdefgh ", "0123456789.,", " \n\t\u00a0\u2028", "éüßñçøåæ", "абвгд", "日本語中文", "😀🎉🏽\u200d", "'sdtmlrve ", "\u0300\u0301\u0903", "²½ⅧⅨ٣"]
    text = ""
    for _ in range(draw.randint(1, 12)):
        pool = draw.choice(pools) if draw.random() < 0.8 else chr(draw.choice([draw.randint(1, 0xD7FF), draw.randint(0xE000, 0x10FFFF)]))
        text += "".join(draw.choice(pool) for _ in range(draw.randint(1, 5)))
    return text


def main():
    out = pathlib.Path(sys.argv[1])
    tokenizer = ByteLevelBPETokenizer()
    corpus = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/architecture.md", "CONTRIBUTING.md")]
    tokenizer.train_from_iterator(corpus, vocab_size=700, min_frequency=2, special_tokens=["<|endoftext|>"])
    tokenizer.save_model(str(out))
    plain = ByteLevelBPETokenizer(str(out / "vocab.json"), str(out / "merges.txt"))
    spaced = ByteLevelBPETokenizer(str(out / "vocab.json"), str(out / "merges.txt"), add_prefix_space=True)
    draw = random.Random(1)
    texts = TEXTS + [random_text(draw) for _ in range(120)]
    with open(out / "tokens.txt", "w", encoding="ascii") as f:
        for text in texts:
            f.write(f"encode {text.encode().hex() or '-'} {','.join(map(str, plain.encode(text).ids)) or '-'}\n")
        for text in TEXTS:
            f.write(f"prefix {text.encode().hex() or '-'} {','.join(map(str, spaced.encode(text).ids)) or '-'}\n")
        for _ in range(60):
            ids = [draw.randrange(1, plain.get_vocab_size()) for _ in range(draw.randint(1, 9))]
            f.write(f"decode {','.join(map(str, ids))} {plain.decode(ids).encode().hex() or '-'}\n")


if __name__ == "__main__":
    main()
