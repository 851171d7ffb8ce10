"""The application: its endpoints, and what each does."""

import base64
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import anyio
import anyio.to_thread
from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.middleware.cors import CORSMiddleware
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse, PlainTextResponse, RedirectResponse, Response
from fastapi.security import HTTPBearer
from fastapi.staticfiles import StaticFiles

from relvec import __version__
from relvec.errors import RelvecError
from relvec.index import complete
from relvec.index.pair_index import RERANKED
from relvec.naming import Catalogue
from relvec.pairs import Pair
from relvec.serve import schemas
from relvec.serve.answers import Answers
from relvec.serve.chart import chart
from relvec.serve.errors import HANDLERS, RefusedError, documented
from relvec.serve.limits import Admission, Guard
from relvec.serve.metrics import Metrics
from relvec.serve.models import Models, Served
from relvec.similarity import Vectors, cosine, normalized

PAGE = Path(__file__).parent / "page"
FROM_EACH = 16
"""Of each source of candidates for a missing word: with the library's 48, an answer takes twice as long."""

THREADS = 32
"""Requests that the library answers at once; each waits for its pairs most of the time."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Limits:
    """What a server takes of one client, and of all at once."""

    max_pairs: int
    max_bytes: int
    queue_pairs: int
    timeout_seconds: float


class Service:
    """What the endpoints share: the models, and how much may be under way."""

    def __init__(self, models: Models, limits: Limits, metrics: Metrics) -> None:
        self.models, self.limits, self.metrics = models, limits, metrics
        self.admission = Admission(limits.queue_pairs)
        self._answers = Answers[Vectors]()
        self._threads: anyio.CapacityLimiter | None = None

    def admit(self, request: Request, field: str, given: int, *, encoded: int | None = None) -> None:
        """Take a request of some given pairs; `encoded` is about how many will be encoded where they are others."""
        if given > self.limits.max_pairs:
            most = self.limits.max_pairs
            raise RefusedError(
                413, f"{field} has {given:,} pairs where {most:,} are the most; send fewer.", field=field
            )
        cost = given if encoded is None else encoded
        self.admission.enter(cost)
        request.state.pairs = cost

    async def vectors(self, served: Served, pairs: Sequence[Pair], field: str) -> Vectors:
        try:
            future = served.batcher.submit(pairs)
        except RelvecError as error:
            raise self._bad_pair(served, pairs, field) from error
        return await self._answers.of(future)

    @staticmethod
    def _bad_pair(served: Served, pairs: Sequence[Pair], field: str) -> RefusedError:
        for place, pair in enumerate(pairs):
            try:
                served.model.token_ids([pair])
            except RelvecError as error:
                return RefusedError(422, str(error), field=f"{field}.{place}")
        raise AssertionError("every pair by itself can be encoded")

    async def in_thread(self, work: Callable[[], Result]) -> Result:
        """What the library does with a model; it waits for its pairs, while the server goes on."""
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(THREADS)
        return await anyio.to_thread.run_sync(work, limiter=self._threads, abandon_on_cancel=True)


async def _service(request: Request) -> Service:  # what is not async, FastAPI runs in a thread
    return request.app.state.service


Shared = Annotated[Service, Depends(_service)]

api = APIRouter(responses=documented(401, 408, 413, 422, 429, 503))


def _pairs(given: Sequence[schemas.Words]) -> list[Pair]:
    return [words.pair for words in given]


@api.post("/embed", summary="Relation vectors of pairs")
async def embed(body: schemas.EmbedRequest, request: Request, service: Shared) -> schemas.EmbedAnswer:
    served = service.models.get(body.model)
    service.admit(request, "pairs", len(body.pairs))
    vectors = await service.vectors(served, _pairs(body.pairs), "pairs")
    if body.normalize:
        vectors = normalized(vectors)
    return schemas.EmbedAnswer(model=served.name, dimensions=vectors.shape[1], vectors=vectors.tolist())


@api.post("/similarity", summary="How alike the relations of pairs are")
async def similarity(body: schemas.SimilarityRequest, request: Request, service: Shared) -> schemas.SimilarityAnswer:
    served = service.models.get(body.model)
    left, right = _pairs(body.left), _pairs(body.right or [])
    service.admit(request, "right" if right else "left", len(left) + len(right))
    of_left = await service.vectors(served, left, "left")
    of_right = await service.vectors(served, right, "right") if right else of_left
    return schemas.SimilarityAnswer(model=served.name, similarities=cosine(of_left, of_right).tolist())


@api.post("/solve", summary="Answer an analogy question")
async def solve(body: schemas.SolveRequest, request: Request, service: Shared) -> schemas.SolveAnswer:
    served = service.models.get(body.model)
    stem, choices = body.stem.pair, _pairs(body.choices)
    directions = 1 if body.scoring == "forward" else 2
    service.admit(request, "choices", len(choices) + 1, encoded=directions * (len(choices) + 1))
    solution = await service.in_thread(lambda: served.model.solve(stem, choices, scoring=body.scoring))
    return schemas.SolveAnswer(
        model=served.name, answer=solution.answer, choice=body.choices[solution.answer], scores=list(solution.scores)
    )


@api.post("/explain", summary="How the two words of a pair are related, in words")
async def explain(body: schemas.ExplainRequest, request: Request, service: Shared) -> schemas.ExplainAnswer:
    served = service.models.get(body.model)
    catalogue, pairs = served.needed_catalogue(), _pairs(body.pairs)
    service.admit(request, "pairs", len(pairs))
    vectors = await service.vectors(served, pairs, "pairs")
    return await service.in_thread(lambda: _explained(served.name, catalogue, pairs, vectors, body.top))


def _explained(
    name: str, catalogue: Catalogue, pairs: Sequence[Pair], vectors: Vectors, top: int
) -> schemas.ExplainAnswer:
    rows = zip(pairs, catalogue.explain(pairs, vectors, top), catalogue.related(vectors), strict=True)
    explained = [
        schemas.PairExplained(
            head=head,
            tail=tail,
            relatedness=float(related),
            relations=[
                schemas.RelationFound(
                    name=each.relation,
                    sentence=each.sentence,
                    probability=each.probability,
                    reversed=each.is_reversed,
                    examples=[schemas.Words(head=head, tail=tail) for head, tail in each.examples],
                )
                for each in found
            ],
        )
        for (head, tail), found, related in rows
    ]
    return schemas.ExplainAnswer(model=name, explanations=explained)


@api.post("/map", summary="Where a pair lies among relations, for a picture")
async def map_relations(body: schemas.MapRequest, request: Request, service: Shared) -> schemas.MapAnswer:
    served = service.models.get(body.model)
    catalogue = served.needed_catalogue()
    service.admit(request, "pair", 1)
    vectors = await service.vectors(served, [body.pair.pair], "pair")
    places = await service.in_thread(lambda: chart(catalogue, vectors[0]))
    relations = [
        schemas.RelationPlaced(name=name, x=x, y=y, rank=rank, reversed=is_reversed)
        for name, x, y, rank, is_reversed in places
    ]
    return schemas.MapAnswer(model=served.name, relations=relations)


@api.post("/neighbours", summary="The pairs of the index whose relation is most alike")
async def neighbours(body: schemas.NeighboursRequest, request: Request, service: Shared) -> schemas.NeighboursAnswer:
    served = service.models.get(body.model)
    index, pairs = served.needed_index(), _pairs(body.pairs)
    is_final = index.is_exact and served.model.existing_catalogue is None
    again = 0 if is_final else max(RERANKED, 2 * body.top)
    service.admit(request, "pairs", len(pairs), encoded=len(pairs) + again)
    found = await service.in_thread(
        lambda: index.neighbours(served.model, pairs, body.top, shared_words=body.shared_words)
    )
    listed = [
        schemas.NeighbourFound(head=head, tail=tail, score=score, relation=relation or None)
        for (head, tail), score, relation in found
    ]
    return schemas.NeighboursAnswer(model=served.name, neighbours=listed)


@api.post("/complete", summary="Complete an analogy: a is to b as c is to what?")
async def complete_analogy(body: schemas.CompleteRequest, request: Request, service: Shared) -> schemas.CompleteAnswer:
    served = service.models.get(body.model)
    index, (a, b) = served.needed_index(), body.pair.pair
    from_each = max(FROM_EACH, body.top)
    service.admit(request, "pair", 1, encoded=3 * from_each)
    found = await service.in_thread(
        lambda: complete(served.model, index, a, b, body.head, body.top, from_each=from_each)
    )
    words = [schemas.WordFound(word=word, score=score) for word, score in found]
    return schemas.CompleteAnswer(model=served.name, words=words)


@api.post("/v1/embeddings", summary="Relation vectors in OpenAI's schema")
async def embeddings(body: schemas.EmbeddingsRequest, request: Request, service: Shared) -> schemas.EmbeddingsAnswer:
    served = service.models.get(body.model)
    if body.dimensions not in (None, served.model.dim):
        raise RefusedError(422, f"{served.name} has {served.model.dim} dimensions; leave this out.", field="dimensions")
    pairs = _pairs(body.input)
    service.admit(request, "input", len(pairs))
    vectors = await service.vectors(served, pairs, "input")
    tokens = sum(map(len, served.model.token_ids(pairs)))
    is_text = body.encoding_format == "base64"
    rows = [base64.b64encode(row.astype("<f4")).decode() if is_text else row.tolist() for row in vectors]
    return schemas.EmbeddingsAnswer(
        data=[schemas.Embedding(index=place, embedding=row) for place, row in enumerate(rows)],
        model=served.name,
        usage=schemas.Usage(prompt_tokens=tokens, total_tokens=tokens),
    )


@api.get("/models", summary="The models of this server")
async def models(service: Shared) -> schemas.ModelsAnswer:
    listed = [
        schemas.ModelServed(
            name=served.name,
            dimensions=served.model.dim,
            backend=served.model.backend,
            index_pairs=None if served.index is None else len(served.index),
        )
        for served in service.models.by_name.values()
    ]
    return schemas.ModelsAnswer(models=listed, max_pairs=service.limits.max_pairs)


state = APIRouter()


@state.get("/health", summary="The process lives")
async def health() -> schemas.HealthAnswer:
    return schemas.HealthAnswer()


@state.get("/ready", summary="Every model encoded a pair, and recently", responses=documented(503))
async def ready(service: Shared) -> schemas.ReadyAnswer:
    checks = [anyio.to_thread.run_sync(served.check_canary) for served in service.models.by_name.values()]
    return schemas.ReadyAnswer(seconds_since_canary=max([await check for check in checks]))


@state.get(
    "/metrics",
    summary="Counters and durations for Prometheus",
    responses=documented(401),
    response_class=PlainTextResponse,
)
async def metrics(service: Shared) -> Response:
    return PlainTextResponse(service.metrics.text(), media_type="text/plain; version=0.0.4")


@state.get("/", include_in_schema=False)
async def page() -> FileResponse:
    return FileResponse(PAGE / "index.html")


@state.get("/docs", include_in_schema=False)
async def docs() -> RedirectResponse:
    return RedirectResponse("/#docs")


def create_app(
    served: Sequence[Served],
    metrics: Metrics,
    limits: Limits,
    *,
    api_key: str = "",
    cors_origins: Sequence[str] = (),
    log_words: bool = False,
) -> FastAPI:
    """The application around models that are loaded; when it ends, their queues are emptied."""
    service = Service(Models(served), limits, metrics)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.models.close()

    app = FastAPI(
        title="relvec",
        version=__version__,
        summary="How are two words related?",
        docs_url=None,  # FastAPI's own loads scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
        exception_handlers=HANDLERS,
    )
    app.state.service = service
    app.openapi = lambda: _document(app, service.models)  # type: ignore[method-assign]
    app.include_router(api, dependencies=[Depends(HTTPBearer(auto_error=False))] if api_key else [])
    app.include_router(state)
    app.mount("/page", StaticFiles(directory=PAGE))
    app.add_middleware(
        Guard,
        admission=service.admission,
        metrics=metrics,
        max_bytes=limits.max_bytes,
        timeout_seconds=limits.timeout_seconds,
        api_key=api_key,
        log_words=log_words,
    )
    if cors_origins:
        app.add_middleware(CORSMiddleware, allow_origins=list(cors_origins), allow_methods=["*"], allow_headers=["*"])
    return app


def _document(app: FastAPI, models: Models) -> dict[str, Any]:
    """The OpenAPI document, in which a request may name the models of this server and no others."""
    if app.openapi_schema is None:
        app.openapi_schema = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        known = {
            "model": [*models.by_name, None],
            "dimensions": [*sorted({served.model.dim for served in models.by_name.values()}), None],
        }
        for name, schema in app.openapi_schema["components"]["schemas"].items():
            for field in known.keys() & schema.get("properties", {}).keys() if name.endswith("Request") else ():
                schema["properties"][field]["enum"] = known[field]
    return app.openapi_schema
