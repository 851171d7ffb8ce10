"""A worker that holds the peer, `relbert`; it runs in the peer's own environment."""

from typing import Any

import relbert.lm
from worker import serve

relbert.lm.internet_connection = lambda: False  # every model is a local folder: ask no web page


class Peer:
    model: Any

    def load(self, model: str, template: str | None, pooling: str | None) -> None:
        self.model = relbert.lm.RelBERT(model, template=template, aggregation_mode=pooling)

    def save(self, folder: str) -> None:
        self.model.save(folder)

    def encode(self, pairs: list[tuple[str, str]], batch_size: int) -> Any:
        return self.model.get_embedding(pairs, batch_size=batch_size)


if __name__ == "__main__":
    serve(Peer())
