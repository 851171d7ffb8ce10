"""What requests and answers hold. Descriptions and examples show in the OpenAPI document."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from relvec.pairs import Pair, as_word, parse_pair
from relvec.similarity import Scoring

LONGEST_WORD = 200
MOST_FOUND = 100

_LETTER = r"[^\s:\x1c-\x1f\x85]"  # what Python takes for space is more than what JSON Schema does
_NOT_EMPTY = r"[^\s\x1c-\x1f\x85]"
_WORD = {"type": "string", "minLength": 1, "maxLength": LONGEST_WORD, "pattern": _NOT_EMPTY}
_PAIR: dict[str, Any] = {
    "title": "Pair",
    "anyOf": [
        {"type": "string", "maxLength": 2 * LONGEST_WORD, "pattern": f"^[^:]*{_LETTER}[^:]*:[^:]*{_LETTER}[^:]*$"},
        {
            "type": "object",
            "properties": {"head": _WORD, "tail": _WORD},
            "required": ["head", "tail"],
            "additionalProperties": False,
        },
        {"type": "array", "items": _WORD, "minItems": 2, "maxItems": 2},
    ],
    "examples": ["barista:coffee", {"head": "barista", "tail": "coffee"}],
}


class Closed(BaseModel):
    """What a client sends: a field that does not exist is an error."""

    model_config = ConfigDict(extra="forbid", strict=True)


Word = Annotated[str, Field(min_length=1, max_length=LONGEST_WORD, pattern=_NOT_EMPTY), AfterValidator(as_word)]


class Words(Closed):
    head: Word
    tail: Word

    @property
    def pair(self) -> Pair:
        return self.head, self.tail


def _as_words(value: Any) -> Any:
    """`"head:tail"` and `["head", "tail"]` as an object."""
    if isinstance(value, str):
        value = parse_pair(value)
    if isinstance(value, list | tuple) and len(value) == 2:
        return {"head": value[0], "tail": value[1]}
    return value


PairGiven = Annotated[Words, BeforeValidator(_as_words), WithJsonSchema(_PAIR)]
PairsGiven = Annotated[list[PairGiven], Field(min_length=1)]
_whole = BeforeValidator(lambda given: int(given) if isinstance(given, float) and given.is_integer() else given)
"""To JSON, 3.0 is an integer."""
Top = Annotated[int, Field(ge=1, le=MOST_FOUND, description="How many to give, best first."), _whole]
Model = Annotated[str | None, Field(description="One of `GET /models`; by default the first.", max_length=200)]


class Request(Closed):
    model: Model = None


class EmbedRequest(Request):
    pairs: PairsGiven
    normalize: bool = Field(False, description="Vectors of length 1.")


class SimilarityRequest(Request):
    left: PairsGiven
    right: PairsGiven | None = Field(None, description="By default the same as `left`.")


class SolveRequest(Request):
    stem: PairGiven
    choices: PairsGiven
    scoring: Scoring = Field("forward", description="Which directions of the pairs are compared.")


class NeighboursRequest(Request):
    pairs: PairsGiven = Field(description="One or more examples of a relation.")
    top: Top = 10
    shared_words: bool = Field(False, description="Also pairs that share a word with the examples.")


class ExplainRequest(Request):
    pairs: PairsGiven = Field(description="Each is explained by itself.")
    top: Annotated[int, Field(ge=1, le=20, description="How many relations of a pair."), _whole] = 5


class MapRequest(Request):
    pair: PairGiven


class CompleteRequest(Request):
    pair: PairGiven = Field(description="a:b of a:b :: c:?")
    head: Word = Field(description="c of a:b :: c:?")
    top: Top = 10


class EmbeddingsRequest(Closed):
    """OpenAI's schema. Other fields of theirs, such as `user`, are taken and ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)

    model: Model = None
    input: Annotated[
        list[PairGiven],
        BeforeValidator(lambda given: given if isinstance(given, list) else [given]),
        Field(min_length=1),
        WithJsonSchema(
            {"anyOf": [_PAIR["anyOf"][0], _PAIR["anyOf"][1], {"type": "array", "items": _PAIR, "minItems": 1}]}
        ),
    ] = Field(description="`head:tail`, an object of head and tail, or a list of such.")
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int | None, Field(ge=1), _whole] = None


class EmbedAnswer(BaseModel):
    model: str
    dimensions: int
    vectors: list[list[float]]


class SimilarityAnswer(BaseModel):
    model: str
    similarities: list[list[float]] = Field(
        description="Cosines: a row for each of `left`, a column for each of `right`."
    )


class SolveAnswer(BaseModel):
    model: str
    answer: int = Field(description="The place of the best choice, from 0.")
    choice: Words
    scores: list[float] = Field(description="The similarity of each choice to the stem.")


class NeighbourFound(BaseModel):
    head: str
    tail: str
    score: float
    relation: str | None = Field(description="What the index calls the relation of this pair.")


class NeighboursAnswer(BaseModel):
    model: str
    neighbours: list[NeighbourFound]


class RelationFound(BaseModel):
    name: str
    sentence: str = Field(description="The relation with the two words in it.")
    probability: float
    reversed: bool = Field(description="Whether the relation, and the sentence, lead from tail to head.")
    examples: list[Words]


class PairExplained(BaseModel):
    head: str
    tail: str
    relatedness: float = Field(description="The probability that the two stand in any relation at all.")
    relations: list[RelationFound]


class ExplainAnswer(BaseModel):
    model: str
    explanations: list[PairExplained]


class RelationPlaced(BaseModel):
    name: str
    x: float
    y: float
    rank: int | None = Field(description="0 for the likeliest; null for those that are not among the nearest.")
    reversed: bool


class MapAnswer(BaseModel):
    model: str
    relations: list[RelationPlaced] = Field(
        description="The pair is at (0, 0), each relation at its true distance, the farthest at 1."
    )


class WordFound(BaseModel):
    word: str
    score: float


class CompleteAnswer(BaseModel):
    model: str
    words: list[WordFound]


class Embedding(BaseModel):
    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class Usage(BaseModel):
    prompt_tokens: int
    total_tokens: int


class EmbeddingsAnswer(BaseModel):
    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: Usage


class ModelServed(BaseModel):
    name: str
    dimensions: int
    backend: str
    index_pairs: int | None = Field(
        description="How many pairs `/neighbours` and `/complete` search; null without an index."
    )


class ModelsAnswer(BaseModel):
    models: list[ModelServed]
    max_pairs: int = Field(description="The most pairs of a request.")


class HealthAnswer(BaseModel):
    status: Literal["alive"] = "alive"


class ReadyAnswer(BaseModel):
    status: Literal["ready"] = "ready"
    seconds_since_canary: float = Field(description="When the last pair of our own was encoded.")


class Problem(BaseModel):
    type: str = Field(description="What kind of problem: a short name that does not change.")
    message: str = Field(description="One sentence that ends in the fix.")
    field: str | None = Field(None, description="Where in the request, such as `pairs.3.head`.")


class ErrorAnswer(BaseModel):
    error: Problem
