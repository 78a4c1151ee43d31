#!/usr/bin/env python3
"""Makes the demo's data from folders xquad-en, xquad-ru and xquad-zh.

    python3 make.py FOLDER

FOLDER/xquad-LANG holds corpus.jsonl, docs.npy, queries.jsonl, queries.npy and qrels.tsv: the paragraphs and questions
of XQuAD with a float16 vector for each. Writes beside this script

    xquad.jsonl.zst  a line a record: kind, id, lang, title, text, and for questions the ids of the answers
    xquad.f16        a row a record, in the same order: 512 little-endian IEEE 754 binary16

Needs Python 3.9 and the `zstd` program, nothing else.
"""
import ast
import json
import pathlib
import struct
import subprocess
import sys

LANGS = ("en", "ru", "zh")
DIMENSIONS = 512
# The questions kept: the same ones in each language, spread evenly, and those that the demo asks.
STEP = 100
ASKED = ("571c8539dd7acb1400e4c0e3", "572f6a0ba23a5019007fc5eb")


def rows(path):
    """The rows of a two-dimensional little-endian float16 .npy file (format version 1.0), as bytes."""
    data = path.read_bytes()
    assert data[:8] == b"\x93NUMPY\x01\x00", path
    (length,) = struct.unpack("<H", data[8:10])
    header = ast.literal_eval(data[10 : 10 + length].decode())
    assert header["descr"] == "<f2" and not header["fortran_order"], header
    num_rows, width = header["shape"]
    assert width == DIMENSIONS, header
    start = 10 + length
    return [data[start + row * width * 2 :][: width * 2] for row in range(num_rows)]


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def clean(text):
    return text.replace("\ufeff", "").strip()


def main(source):
    records, vectors = [], []
    for lang in LANGS:
        folder = source / f"xquad-{lang}"
        corpus = lines(folder / "corpus.jsonl")
        titles = {paragraph["_id"]: paragraph["title"].replace("_", " ") for paragraph in corpus}
        for paragraph, vector in zip(corpus, rows(folder / "docs.npy"), strict=True):
            records.append(
                {
                    "kind": "paragraph",
                    "id": f"{lang}-{paragraph['_id']}",
                    "lang": lang,
                    "title": titles[paragraph["_id"]],
                    "text": clean(paragraph["text"]),
                }
            )
            vectors.append(vector)
        answers = {}
        for line in (folder / "qrels.tsv").read_text().splitlines()[1:]:
            question, paragraph, _ = line.split("\t")
            answers.setdefault(question, []).append(paragraph)
        questions = lines(folder / "queries.jsonl")
        for number, (question, vector) in enumerate(zip(questions, rows(folder / "queries.npy"), strict=True)):
            if number % STEP and question["_id"] not in ASKED:
                continue
            paragraphs = answers[question["_id"]]
            records.append(
                {
                    "kind": "question",
                    "id": question["_id"],
                    "lang": lang,
                    "title": titles[paragraphs[0]],
                    "text": clean(question["text"]),
                    "answers": [f"{lang}-{paragraph}" for paragraph in paragraphs],
                }
            )
            vectors.append(vector)
    here = pathlib.Path(__file__).parent
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
    packed = subprocess.run(["zstd", "-19", "--stdout", "--quiet"], input=text, stdout=subprocess.PIPE, check=True)
    (here / "xquad.jsonl.zst").write_bytes(packed.stdout)
    (here / "xquad.f16").write_bytes(b"".join(vectors))
    print(f"{len(records)} records")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
