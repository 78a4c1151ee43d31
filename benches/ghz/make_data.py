#!/usr/bin/env python3
"""Makes up documents and, for every method, requests for ghz. The same seed makes the same bytes; needs nothing but Python.

    make_data.py --out made                 documents.jsonl to import, and a file of requests for each configuration in methods/

The documents have a vector `v`, texts `title` and `text`, and attributes `section` and `size`; words are drawn by Zipf's law.
Vectors lie around 64 centres, as those of real texts gather; a query lies near a document.
"""
import argparse
import base64
import json
import math
import pathlib
import random
import struct

CENTRES = 64
SECTIONS = ["admin", "devel", "doc", "games", "libs", "net", "science", "text"]


def unit(values):
    length = math.sqrt(sum(value * value for value in values))
    return [value / length for value in values]


def near(random, centre, spread):
    return unit([value + random.gauss(0, spread / math.sqrt(len(centre))) for value in centre])


def as_bytes(vector):
    return {"float32_le": base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()}


class Maker:
    def __init__(self, args):
        self.random = random.Random(args.seed)
        self.collection = args.collection
        syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
        self.words = ["".join(self.random.choices(syllables, k=self.random.randint(2, 4))) for _ in range(20_000)]
        self.weights = [1 / rank for rank in range(1, len(self.words) + 1)]
        self.cumulative = [0.0]
        for weight in self.weights:
            self.cumulative.append(self.cumulative[-1] + weight)
        self.cumulative = self.cumulative[1:]
        normal = lambda: unit([self.random.gauss(0, 1) for _ in range(args.dimensions)])
        self.centres = [normal() for _ in range(CENTRES)]
        self.documents = [self.document(f"d-{number}") for number in range(args.documents)]

    def text(self, count):
        return " ".join(self.random.choices(self.words, cum_weights=self.cumulative, k=count))

    def document(self, key):
        return {
            "key": key,
            "vector": near(self.random, self.random.choice(self.centres), 0.8),
            "title": self.text(4),
            "text": self.text(self.random.randint(20, 60)),
            "section": self.random.choice(SECTIONS),
            "size": self.random.randint(1, 100_000),
        }

    def lines(self):
        for one in self.documents:
            fields = {name: one[name] for name in ("title", "text", "section", "size")}
            yield {"key": one["key"], "vectors": {"v": [round(x, 5) for x in one["vector"]]}, "fields": fields}

    def on_the_wire(self, key):
        one = self.document(key)
        fields = {name: {"string": one[name]} for name in ("title", "text", "section")}
        fields["size"] = {"int64": str(one["size"])}
        return {"key": key, "vectors": {"v": as_bytes(one["vector"])}, "fields": fields}

    def question(self):
        target = self.random.choice(self.documents)
        words = self.random.sample(target["text"].split(), k=self.random.randint(2, 4))
        return as_bytes(near(self.random, target["vector"], 0.4)), " ".join(words)

    def requests(self, count):
        """Name of a configuration → its requests. Braces are ghz's templates."""
        options = {"collection": self.collection, "page_size": 10}
        section = lambda: {"equal": {"field": "section", "value": {"string": self.random.choice(SECTIONS)}}}
        named = {"collection": self.collection}
        each = range(count)
        made = {name: [] for name in ("SearchVector", "SearchVectorFiltered", "SearchKeyword", "SearchHybrid", "SearchText",
                                      "SearchHybridText", "SearchHybridFused")}
        for _ in each:
            vector, text = self.question()
            made["SearchVector"].append({"vector": vector, "options": options})
            made["SearchVectorFiltered"].append({"vector": vector, "options": options | {"filter": section()}})
            made["SearchKeyword"].append({"text": text, "options": options})
            made["SearchHybrid"].append({"vector": vector, "text": text, "options": options})
            made["SearchHybridFused"].append(
                {"vector": vector, "text": text, "options": options, "fusion": {"method": "FUSION_METHOD_RECIPROCAL_RANK"}})
            made["SearchText"].append({"text": text, "options": options})
            made["SearchHybridText"].append({"text": text, "options": options})
        # New keys at first, then the same ones again, so that a soak stays of one size.
        made["UpsertDocuments"] = [named | {"documents": [self.on_the_wire(f"load-{{{{randomInt 0 5000}}}}-{n}")]} for n in range(4)]
        # A call sends all messages of the list.
        made["ImportDocuments"] = [named | {"documents": [self.on_the_wire(f"import-{{{{.RequestNumber}}}}-{m}-{n}") for n in range(10)]} for m in range(4)]
        made["GetDocuments"] = [named | {"keys": [self.random.choice(self.documents)["key"] for _ in range(5)]} for _ in each]
        made["DeleteDocuments"] = [named | {"keys": [f"load-{{{{randomInt 0 5000}}}}-{n}"]} for n in range(4)]
        made["CountDocuments"] = [named | {"filter": section()} for _ in range(len(SECTIONS))]
        made["ExportDocuments"] = [named | {"filter": {"range": {"field": "size", "lt": {"int64": "500"}}}}]
        return made


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=pathlib.Path, required=True, help="folder, made where it is absent")
    arguments.add_argument("--documents", type=int, default=20_000)
    arguments.add_argument("--dimensions", type=int, default=128)
    arguments.add_argument("--count", type=int, default=200, help="requests of each search")
    arguments.add_argument("--collection", default="load")
    arguments.add_argument("--seed", type=int, default=1)
    args = arguments.parse_args()
    maker = Maker(args)
    args.out.mkdir(parents=True, exist_ok=True)
    with open(args.out / "documents.jsonl", "w") as out:
        for line in maker.lines():
            out.write(json.dumps(line) + "\n")
    for name, requests in maker.requests(args.count).items():
        (args.out / f"{name}.json").write_text(json.dumps(requests))


if __name__ == "__main__":
    main()
