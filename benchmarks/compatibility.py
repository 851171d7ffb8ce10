"""Do relvec and the peer read each other's checkpoints? The smallest cosine of 50 pairs, in both directions.

Tiny random models stand for the architectures, real ones for what is in use. The exit code is 1 if a folder
cannot be read or if a cosine is below 0.99999.
"""

import argparse
import itertools
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from peer import Worker, WorkerError, smallest_cosine
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import (
    AlbertConfig,
    AlbertTokenizer,
    AutoModel,
    BertConfig,
    BertTokenizer,
    MPNetConfig,
    MPNetTokenizer,
    PretrainedConfig,
    PreTrainedTokenizerBase,
    RobertaConfig,
    RobertaTokenizer,
)

from relvec.hub.models import resolve
from relvec.pairs import Pair, parse_pair
from relvec.prompts import MANUAL_TEMPLATES, Template

PEER_POOLINGS = ("average", "average_no_mask", "mask")  # the peer has no decoders
SMALLEST_COSINE = 0.99999
REAL_MODELS = ("mpnet", "minilm")

PAIRS: list[Pair] = [
    parse_pair(text)
    for text in """
    Paris:France, Tokyo:Japan, New York:USA, São Paulo:Brazil, Zürich:Schweiz, Kraków:Polska, NASA:space, DNA:gene,
    iPhone:Apple, eBay:auction, McDonald's:burger, O'Brien:Ireland, dog's:dogs', can't:cannot, o'clock:time, 's:of,
    rock ’n’ roll:music, cat:cats, big:bigger, go:went, ice cream:summer, brother-in-law:family, state-of-the-art:new,
    hot dog stand:mustard, time:money, cause:effect, oak:tree, tree:oak, photosynthesis:chlorophyll, qwxzjk:blorptangle,
    antidisestablishmentarianism:word, U.S.:EU, A.M.:P.M., 50%:half, 3rd:third, 1984:Orwell, C++:C#, R&D:science,
    $:€, (:), wheel/tyre:car_part, 東京:日本, 猫:犬, Москва:Россия, Αθήνα:Ελλάδα, القاهرة:مصر, दिल्ली:भारत, 서울:한국,
    naïve:café, 😀:joy
    """.replace("\n", " ").split(", ")
]

Trained = tuple[PretrainedConfig, PreTrainedTokenizerBase]


def byte_level(specials: list[str]) -> dict[str, Any]:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return _train(tokenizer, trainers.BpeTrainer(vocab_size=450, special_tokens=specials, initial_alphabet=alphabet))


def word_piece(specials: list[str], lowercase: bool) -> dict[str, Any]:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return _train(tokenizer, trainers.WordPieceTrainer(vocab_size=350, special_tokens=specials))


def sentence_pieces(specials: list[str]) -> dict[str, Any]:
    tokenizer = Tokenizer(models.BPE())  # a Unigram trainer keeps single letters of so little text
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return _train(tokenizer, trainers.BpeTrainer(vocab_size=300, special_tokens=specials))


def _train(tokenizer: Tokenizer, trainer: Any) -> dict[str, Any]:
    """The trained model (vocabulary, merges) of a tokenizer that has seen the templates and the pairs."""
    trainer.show_progress = False
    sentences = [Template.of(number).fill(pair) for number in MANUAL_TEMPLATES for pair in PAIRS]
    tokenizer.train_from_iterator(sentences, trainer)
    trained: dict[str, Any] = json.loads(tokenizer.to_str())["model"]
    return trained


def roberta() -> Trained:
    trained = byte_level(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    merges: Any = [tuple(merge) for merge in trained["merges"]]
    tokenizer = RobertaTokenizer(vocab=trained["vocab"], merges=merges, mask_token=_mask("<mask>"))
    return RobertaConfig(**_tiny(trained, 130)), tokenizer


def bert() -> Trained:
    trained = word_piece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], lowercase=False)
    return BertConfig(**_tiny(trained, 128)), BertTokenizer(vocab=trained["vocab"], do_lower_case=False)


def albert() -> Trained:
    trained = sentence_pieces(["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"])
    config = AlbertConfig(**_tiny(trained, 128), embedding_size=16, pad_token_id=0, bos_token_id=2, eos_token_id=3)
    pieces = [(piece, -1.0) for piece in sorted(trained["vocab"], key=trained["vocab"].__getitem__)]
    return config, AlbertTokenizer(vocab=pieces, mask_token=_mask("[MASK]"))


def mpnet() -> Trained:
    trained = word_piece(["<s>", "<pad>", "</s>", "[UNK]", "<mask>"], lowercase=True)
    return MPNetConfig(**_tiny(trained, 130)), MPNetTokenizer(vocab=trained["vocab"], mask_token=_mask("<mask>"))


ARCHITECTURES: dict[str, Callable[[], Trained]] = {
    "tiny roberta": roberta,
    "tiny bert": bert,
    "tiny albert": albert,
    "tiny mpnet": mpnet,
}


def _mask(name: str) -> Any:
    return AddedToken(name, lstrip=True, special=True)  # as in the published tokenizers: it takes the blank before it


def _tiny(trained: dict[str, Any], positions: int) -> dict[str, Any]:
    # Large random weights, so that a single wrong token turns the vector visibly.
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    vocabulary = {"vocab_size": len(trained["vocab"]), "max_position_embeddings": positions}
    return {**sizes, **vocabulary, "initializer_range": 0.5}


def base_folder(name: str, scratch: Path) -> Path:
    """A plain encoder, as either package may start from."""
    if name not in ARCHITECTURES:
        return resolve(name)
    folder = scratch / name.replace(" ", "-")
    torch.manual_seed(0)
    config, tokenizer = ARCHITECTURES[name]()
    tokenizer.model_max_length = 128
    AutoModel.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def crossing(writer: Worker, reader: Worker, base: Path, template: int, pooling: str) -> float:
    """The smallest cosine between the writer's vectors and those of the reader of its folder; nan if it cannot read."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            writer.load(base, Template.of(template).to_config()["template"], pooling)
            writer.save(Path(folder))
            reader.load(Path(folder))
            return smallest_cosine(writer.encode(PAIRS).vectors, reader.encode(PAIRS).vectors)
        except WorkerError as error:
            print(error, file=sys.stderr)
            return math.nan


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=[*ARCHITECTURES, *REAL_MODELS], help="'tiny bert', mpnet, ...")
    parser.add_argument(
        "--templates", nargs="+", type=int, default=list(MANUAL_TEMPLATES), help="numbers of the paper's"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of each package")
    parser.add_argument("--peer-python", type=Path, help="the interpreter of an environment that holds the peer")
    options = parser.parse_args()
    print("| model | saved by, read by | pooling |", *(f"template {number} |" for number in options.templates))
    print("| --- | --- | --- |" + " ---: |" * len(options.templates))
    all_agree = True
    with (
        tempfile.TemporaryDirectory() as scratch,
        Worker.of_relvec(options.threads) as relvec,
        Worker.of_peer(options.peer_python, options.threads) as peer,
    ):
        ways = {"relvec, relbert": (relvec, peer), "relbert, relvec": (peer, relvec)}
        for name in options.models:
            base = base_folder(name, Path(scratch))
            for (way, (writer, reader)), pooling in itertools.product(ways.items(), PEER_POOLINGS):
                cosines = [crossing(writer, reader, base, template, pooling) for template in options.templates]
                print(f"| {name} | {way} | {pooling} |", *(f"{cosine:.7f} |" for cosine in cosines), flush=True)
                all_agree &= all(cosine >= SMALLEST_COSINE for cosine in cosines)
    return 0 if all_agree else 1


if __name__ == "__main__":
    sys.exit(main())
