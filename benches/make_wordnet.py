#!/usr/bin/env python3
"""Makes the data folder of the benchmarks from WordNet.

    apt-get install wordnet-base        # or apt-get download, and dpkg -x into a folder
    pip install wordllama numpy
    python3 make_wordnet.py /usr/share/wordnet FOLDER

Writes into FOLDER

    corpus.jsonl.gz  a line a synset: _id (type and offset), title (its words), text (its gloss), pos, lexfile
    docs.npy         float16, a row a synset in the same order: WordLlama's 256-dimensional vector of "title: text", of unit
                     length

The same versions give the same files. WordNet's licence allows use and copying with its notice kept.
"""
import gzip
import json
import pathlib
import sys

import numpy
import wordllama

POS = ("noun", "verb", "adj", "adv")


def synsets(source):
    for pos in POS:
        for line in (source / f"data.{pos}").read_text(encoding="latin-1").splitlines():
            if line.startswith("  "):
                continue  # the licence
            head, _, gloss = line.partition(" | ")
            offset, lexfile, letter, num_words, *rest = head.split()
            words = rest[: 2 * int(num_words, 16) : 2]
            yield {
                "_id": letter + offset,
                "title": ", ".join(words).replace("_", " "),
                "text": gloss.strip(),
                "pos": pos,
                "lexfile": int(lexfile),
            }


def main(source, folder):
    rows = list(synsets(source))
    # The package brings weights and tokenizer along; it would look for the latter elsewhere and then download it.
    package = pathlib.Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(dim=256, cache_dir=package, disable_download=True)
    vectors = model.embed([f"{row['title']}: {row['text']}" for row in rows], norm=True)
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.GzipFile(folder / "corpus.jsonl.gz", "wb", mtime=0) as out:
        for row in rows:
            out.write((json.dumps(row, ensure_ascii=False) + "\n").encode())
    numpy.save(folder / "docs.npy", numpy.asarray(vectors, dtype=numpy.float16))
    print(f"{len(rows)} synsets, {vectors.shape[1]} dimensions")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
