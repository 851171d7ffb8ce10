"""Tiny real models for every test and doctest: each architecture with a tokenizer of its own kind, trained here."""

import json
import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

# No test may reach the network, whatever the machine allows.
os.environ["RELVEC_OFFLINE"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import (
    AddedToken,
    AlbertConfig,
    AlbertTokenizer,
    AutoModel,
    BertConfig,
    BertTokenizer,
    DistilBertConfig,
    MPNetConfig,
    MPNetTokenizer,
    PretrainedConfig,
    PreTrainedTokenizerBase,
    RobertaConfig,
    RobertaTokenizer,
    XLMRobertaConfig,
    XLMRobertaTokenizer,
)

from relvec.io.checksums import CHECKSUMS_NAME
from relvec.model.torch_backend import TorchRelBERT
from relvec.storage.lock import output_lock

torch.set_num_threads(1)  # tiny models only lose by sharing their work

SENTENCES = [
    "Today, I finally discovered the relation between Paris and France : Paris is the capital of France",
    "I wasn't aware of this relationship, but I just read in the encyclopedia that bread is the product of baker's",
    "I wasn’t aware that São Paulo and 東京 are cities, nor that москва is; ice cream is cold; dogs' bones, o'clock",
    "A barista makes coffee and a cup of tea; the winemaker makes wine; Tokyo is in Japan; cats and dogs are animals",
]

ROBERTA_SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
BERT_SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
MPNET_SPECIALS = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"]
ALBERT_SPECIALS = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]

MASK: Any = AddedToken("<mask>", lstrip=True, special=True)
SIZES: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 66,
}


def byte_level_tokenizer() -> PreTrainedTokenizerBase:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=ROBERTA_SPECIALS, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES * 4, trainer)
    trained = json.loads(tokenizer.to_str())["model"]
    merges: Any = [tuple(merge) for merge in trained["merges"]]
    return RobertaTokenizer(vocab=trained["vocab"], merges=merges, mask_token=MASK)


def word_piece_vocabulary(specials: list[str]) -> dict[str, int]:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=specials, show_progress=False)
    tokenizer.train_from_iterator(SENTENCES * 4, trainer)
    return tokenizer.get_vocab()


def unigram_vocabulary(specials: list[str]) -> list[tuple[str, float]]:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=160, special_tokens=specials, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator([*SENTENCES, *(s.lower() for s in SENTENCES)] * 4, trainer)
    return [(piece, score) for piece, score in json.loads(tokenizer.to_str())["model"]["vocab"]]


def _roberta() -> tuple[type[PretrainedConfig], PreTrainedTokenizerBase]:
    return RobertaConfig, byte_level_tokenizer()


def _bert() -> tuple[type[PretrainedConfig], PreTrainedTokenizerBase]:
    return BertConfig, BertTokenizer(vocab=word_piece_vocabulary(BERT_SPECIALS))


def _distilbert() -> tuple[type[PretrainedConfig], PreTrainedTokenizerBase]:
    return DistilBertConfig, BertTokenizer(vocab=word_piece_vocabulary(BERT_SPECIALS), do_lower_case=False)


def _mpnet() -> tuple[type[PretrainedConfig], PreTrainedTokenizerBase]:
    return MPNetConfig, MPNetTokenizer(vocab=word_piece_vocabulary(MPNET_SPECIALS), mask_token=MASK)


def _albert() -> tuple[type[PretrainedConfig], PreTrainedTokenizerBase]:
    return AlbertConfig, AlbertTokenizer(vocab=unigram_vocabulary(ALBERT_SPECIALS))


def _xlm_roberta() -> tuple[type[PretrainedConfig], PreTrainedTokenizerBase]:
    return XLMRobertaConfig, XLMRobertaTokenizer(vocab=unigram_vocabulary(ROBERTA_SPECIALS), mask_token=MASK)


ARCHITECTURES: dict[str, Callable[[], tuple[type[PretrainedConfig], PreTrainedTokenizerBase]]] = {
    "roberta": _roberta,
    "bert": _bert,
    "albert": _albert,
    "mpnet": _mpnet,
    "xlm-roberta": _xlm_roberta,
    "distilbert": _distilbert,
}


def build_tiny(architecture: str, folder: Path) -> Path:
    """A random encoder and its tokenizer, saved with a short template in the published format."""
    config_class, tokenizer = ARCHITECTURES[architecture]()
    sizes = {**SIZES, "embedding_size": 8} if architecture == "albert" else SIZES
    if architecture == "distilbert":
        sizes = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "max_position_embeddings": 66}
    settings: dict[str, Any] = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id, **sizes}
    config = config_class(**settings)
    torch.manual_seed(0)
    encoder = AutoModel.from_config(config)
    with torch.no_grad():
        for name, weight in encoder.named_parameters():
            if "norm" not in name.lower():
                weight.normal_(0, 0.5)  # the usual 0.02 would make all vectors of so small a model alike
    TorchRelBERT(encoder, tokenizer, "[h] is the <mask> of [t]", name=folder.name).save_pretrained(folder)
    (folder / CHECKSUMS_NAME).unlink()  # tests damage copies of it, to see what else notices
    return folder


@pytest.fixture(scope="session")
def tiny_folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Ask for an architecture, get the folder of a tiny model; all workers of a run share it."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    @cache
    def folder_of(architecture: str) -> Path:
        folder = root / "models" / f"tiny-{architecture}"
        with output_lock(root / "models" / f"building-{architecture}", wait=True):
            return folder if folder.is_dir() else build_tiny(architecture, folder)

    return folder_of


@pytest.fixture(params=ARCHITECTURES)
def any_folder(request: pytest.FixtureRequest, tiny_folders: Callable[[str], Path]) -> Path:
    return tiny_folders(request.param)


@pytest.fixture(scope="session")
def tiny_folder(tiny_folders: Callable[[str], Path]) -> Path:
    return tiny_folders("roberta")


@pytest.fixture
def tiny(tiny_folder: Path) -> TorchRelBERT:
    return TorchRelBERT.from_pretrained(tiny_folder)


@pytest.fixture(scope="session", autouse=True)
def _session_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The user's own cache is left alone, also by fixtures that serve several tests."""
    os.environ["RELVEC_CACHE"] = str(tmp_path_factory.getbasetemp() / "cache")


@pytest.fixture(autouse=True)
def _own_places(
    request: pytest.FixtureRequest, doctest_namespace: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every test has a cache of its own; doctests know `tiny_model` and write into an empty folder."""
    monkeypatch.setenv("RELVEC_CACHE", str(tmp_path.with_name(f"{tmp_path.name}-cache")))
    if isinstance(request.node, pytest.DoctestItem):
        doctest_namespace["tiny_model"] = str(request.getfixturevalue("tiny_folder"))
        monkeypatch.chdir(tmp_path)


@pytest.fixture
def full_disk() -> Callable[[], AbstractContextManager[None]]:
    """Blocks in which no file can be written beyond 64 bytes."""

    @contextmanager
    def full() -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, handler)

    return full
