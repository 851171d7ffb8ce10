"""A template bound to a tokenizer: pairs become token ids without tokenizing the template again."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby
from typing import Any, Protocol

from relvec.errors import RelvecError
from relvec.pairs import Pair
from relvec.prompts.template import HEAD, MASK, TAIL, Template, fill_slots

TokenIds = list[int]

# Words that a tokenizer might join to their neighbours: they decide whether the template may be cut at its spaces.
_PROBES: tuple[Pair, ...] = (
    ("word", "word"),
    ("Word", "ICE cream"),
    ("dogs'", "o'clock"),
    ("'s", "-less"),
    ("東京", "日本"),
    ("москва", "São Paulo"),
    ("50%", "3rd"),
    ("U.S.", "("),
)


class PromptTokenizer(Protocol):
    """What a template asks of a tokenizer: those of transformers have it, and that of the numpy backend."""

    mask_token: Any
    unk_token: Any
    unk_token_id: Any

    @property
    def all_special_tokens(self) -> list[str]: ...

    def get_vocab(self) -> dict[str, int]: ...

    def get_added_vocab(self) -> dict[str, int]: ...

    def __call__(self, text: list[str], *, add_special_tokens: bool = True, **options: Any) -> Mapping[str, Any]: ...


class TokenizedTemplate:
    """Calling it on pairs gives their token ids, special tokens included.

    The template is cut at its spaces. A stretch without slots is tokenized once; a piece with a slot, such as
    ` [h]'s`, once for each distinct word, with its space, so that the leading-space rules of byte-level BPE hold.
    Where the cut would change the tokens of probe words, the whole sentence is one piece.
    """

    def __init__(self, template: Template, tokenizer: PromptTokenizer) -> None:
        if template.has_mask and tokenizer.mask_token is None:
            problem = f"The template {template.text!r} has a <mask>, but the tokenizer has none"
            raise RelvecError(f"{problem}; use a template without <mask>, or a masked language model.")
        self.template = template
        self._tokenizer = tokenizer
        self._prefix, self._suffix = self._special_tokens()
        self._specials = self._special_pattern()
        self._of_nothing: dict[str, TokenIds] = {}  # of a piece without its words; asked for at every pair
        if template.tokens is not None:
            self._pieces = self._pieces_of_tokens(template.tokens)
        else:
            sentence = template.text.replace(MASK, tokenizer.mask_token or "")
            self._pieces = self._pieces_of_text(sentence)
            if not self._matches_whole_sentences(sentence):
                self._pieces = [sentence]

    def __call__(self, pairs: Sequence[Pair]) -> list[TokenIds]:
        self._check_words(pairs)
        return self._assembled(pairs) if pairs else []

    def unknown_rows(self, token_ids: Sequence[TokenIds]) -> list[int]:
        """Of what a call gave: the rows with a token that stands for what the vocabulary lacks in the pair."""
        unknown = self._tokenizer.unk_token_id
        rows = [row for row, tokens in enumerate(token_ids) if unknown in tokens]
        if not rows:
            return []
        pieces = [self._tokenize([fill_slots(p, ("", ""))])[0] if isinstance(p, str) else p for p in self._pieces]
        in_template = sum(part.count(unknown) for part in (self._prefix, *pieces, self._suffix))
        return [row for row in rows if token_ids[row].count(unknown) > in_template]

    def unknown_word(self, pair: Pair) -> str:
        """The word of such a pair that the vocabulary lacks, the first if both."""
        return pair[0] if self._tokenizer.unk_token_id in self._tokenize([pair[0]])[0] else pair[1]

    def _assembled(self, pairs: Sequence[Pair]) -> list[TokenIds]:
        columns = [self._column(piece, pairs) for piece in self._pieces]
        return [[*self._prefix, *chain(*parts), *self._suffix] for parts in zip(*columns, strict=True)]

    def _column(self, piece: str | TokenIds, pairs: Sequence[Pair]) -> list[TokenIds]:
        """The token ids that one piece of the template contributes to each pair."""
        if not isinstance(piece, str):
            return [piece] * len(pairs)
        filled = [fill_slots(piece, pair) for pair in pairs]
        distinct = list(dict.fromkeys(filled))
        ids = dict(zip(distinct, self._tokenize(distinct), strict=True))
        if piece not in self._of_nothing:
            (self._of_nothing[piece],) = self._tokenize([fill_slots(piece, ("", ""))])
        nothing = self._of_nothing[piece]
        for text, tokens in ids.items():
            if tokens == nothing and self._tokenizer.unk_token_id not in tokens:
                raise RelvecError(f"{text.strip()!r} has no token in this model's vocabulary; leave that word out.")
        return [ids[text] for text in filled]

    def _pieces_of_text(self, sentence: str) -> list[str | TokenIds]:
        pieces: list[str | TokenIds] = []
        words = re.findall(r"\s*\S+", sentence)
        for has_slot, group in groupby(words, key=lambda word: HEAD in word or TAIL in word):
            stretch = list(group)
            pieces += stretch if has_slot else self._tokenize(["".join(stretch)])
        return pieces

    def _pieces_of_tokens(self, tokens: Sequence[str]) -> list[str | TokenIds]:
        vocabulary = self._tokenizer.get_vocab()
        pieces: list[str | TokenIds] = []
        for position, token in enumerate(tokens):
            if token in (HEAD, TAIL):
                pieces.append(token if position == 0 else f" {token}")
                continue
            token = self._tokenizer.mask_token if token == MASK else token
            if token not in vocabulary:
                problem = f"The prompt token {token!r} is not in the vocabulary"
                raise RelvecError(f"{problem}; use the model it was made for, or another template.")
            pieces.append([vocabulary[token]])
        return pieces

    def _matches_whole_sentences(self, sentence: str) -> bool:
        filled = [fill_slots(sentence, probe) for probe in _PROBES]
        whole = self._tokenizer(filled, padding=False, truncation=False, verbose=False)["input_ids"]
        return self._assembled(_PROBES) == whole

    def _check_words(self, pairs: Iterable[Pair]) -> None:
        for head, tail in pairs:
            found = self._specials.search(head) or self._specials.search(tail)
            if found:
                raise RelvecError(
                    f"The pair {head}:{tail} contains {found.group()!r}, a special token of this model; rewrite it."
                )

    def _special_pattern(self) -> re.Pattern[str]:
        """Text that the tokenizer would take for a control token if it stood inside a word."""
        added = set(self._tokenizer.get_added_vocab()) | set(self._tokenizer.all_special_tokens)
        added.discard(str(self._tokenizer.unk_token))
        names = sorted((name for name in added if name.strip()), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, names)) or "(?!)")

    def _special_tokens(self) -> tuple[TokenIds, TokenIds]:
        """What the tokenizer puts before and after every sentence."""
        bare = self._tokenize(["a"])[0]
        (full,) = self._tokenizer(["a"], padding=False, truncation=False, verbose=False)["input_ids"]
        start = next(i for i in range(len(full)) if full[i : i + len(bare)] == bare)
        return full[:start], full[start + len(bare) :]

    def _tokenize(self, texts: list[str]) -> list[TokenIds]:
        encoded = self._tokenizer(texts, add_special_tokens=False, padding=False, truncation=False, verbose=False)
        return encoded["input_ids"]
