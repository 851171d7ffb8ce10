"""A worker that holds relvec."""

from typing import Any

from worker import serve

from relvec import RelBERT


class Relvec:
    model: RelBERT

    def load(
        self, model: str, template: str | None, pooling: str | None, backend: str = "torch", dtype: str = "float32"
    ) -> None:
        options: dict[str, Any] = {"backend": backend, "dtype": dtype, "device": "cpu"}
        self.model = RelBERT.from_pretrained(model, template=template, pooling=pooling, **options)

    def save(self, folder: str) -> None:
        self.model.save_pretrained(folder)

    def encode(self, pairs: list[tuple[str, str]], batch_size: int) -> Any:
        return self.model.encode(pairs, batch_size=batch_size)


if __name__ == "__main__":
    serve(Relvec())
