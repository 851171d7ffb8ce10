"""The tokenizer of a BERT or MPNet folder without transformers: WordPiece from tokenizer.json."""

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

# Of these classes transformers reads only the vocabulary from tokenizer.json, and the rest from tokenizer_config.json.
CLASSES = ("BertTokenizer", "BertTokenizerFast", "MPNetTokenizer", "MPNetTokenizerFast")

NO_LIMIT = 10**30


class NumpyTokenizer:
    """What a prompt and a model ask of a tokenizer, in the words of transformers.

    A folder whose two files disagree is refused, for there transformers would give other tokens.
    """

    def __init__(self, folder: Path) -> None:
        settings: dict[str, Any] = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        tokens = self._tokenizer.get_added_tokens_decoder().values()
        self.all_special_tokens = [token.content for token in tokens if token.special]
        if not self._follows(settings):
            raise ValueError("its tokenizer is of another kind")
        added = self.get_added_vocab()
        self.mask_token, self.unk_token = _name(settings["mask_token"]), _name(settings["unk_token"])
        self.mask_token_id, self.unk_token_id, self.pad_token_id = (
            added[_name(settings[f"{kind}_token"])] for kind in ("mask", "unk", "pad")
        )
        self.model_max_length = int(settings.get("model_max_length") or NO_LIMIT)

    def __call__(self, text: list[str], *, add_special_tokens: bool = True, **_: Any) -> dict[str, list[list[int]]]:
        """The token ids of each text; it never pads or cuts, whatever the options of transformers are."""
        encoded = self._tokenizer.encode_batch(text, add_special_tokens=add_special_tokens)
        return {"input_ids": [each.ids for each in encoded]}

    def get_vocab(self) -> dict[str, int]:
        return dict(self._tokenizer.get_vocab())

    def get_added_vocab(self) -> dict[str, int]:
        return {token.content: number for number, token in self._tokenizer.get_added_tokens_decoder().items()}

    def _follows(self, settings: dict[str, Any]) -> bool:
        """Whether the file splits and spells text as the settings say."""
        normalizer, model = self._tokenizer.normalizer, self._tokenizer.model
        if not isinstance(normalizer, BertNormalizer) or not isinstance(model, WordPiece):
            return False
        spelled = (normalizer.lowercase, normalizer.handle_chinese_chars, normalizer.strip_accents)
        wanted = (settings.get("do_lower_case", True), settings.get("tokenize_chinese_chars", True))
        return (
            settings.get("tokenizer_class") in CLASSES
            and isinstance(self._tokenizer.pre_tokenizer, BertPreTokenizer)
            and spelled == (*wanted, settings.get("strip_accents"))
            and normalizer.clean_text
            and model.unk_token == _name(settings["unk_token"])
        )


def _name(token: Any) -> str:
    """A token is written as text, or as an object with its text in it."""
    return str(token["content"] if isinstance(token, dict) else token)
