"""The one loop, on the smallest thing that can be trained: two numbers that shall become a target."""

from pathlib import Path
from typing import Any

import pytest
import torch

from relvec.errors import RelvecError
from relvec.training.loop import CHECKPOINT_NAME, Loop, NamedScores, restore_weights

TARGET = torch.tensor([3.0, -1.0])
QUICK: dict[str, Any] = {"steps": 6, "evaluate_every": 2, "learning_rate": 0.1, "warmup_steps": 2}


class Toy(Loop):
    score = "distance"

    def __init__(self, folder: Path | None, job: str = "toy", killed_at: int = 0, **changes: Any) -> None:
        self.point = torch.nn.Parameter(torch.zeros(2))
        self.killed_at, self.taken, self.rates = killed_at, list[int](), list[float]()
        checkpoint = folder / CHECKPOINT_NAME if folder else None
        super().__init__([("point", self.point)], job, checkpoint, **QUICK | changes)

    def gradients(self, step: int) -> float:
        if step == self.killed_at:
            raise KeyboardInterrupt
        self.taken.append(step)
        self.rates.append(self.optimizer.param_groups[0]["lr"])
        self.course.counts["seen"] += 1
        torch.manual_seed(step)
        loss = (self.point - TARGET + 0.1 * torch.randn(2)).square().sum()
        loss.backward()
        return loss.item()

    def evaluate(self) -> NamedScores:
        return {"distance": float((self.point - TARGET).norm().detach())}


@pytest.mark.parametrize(("killed_at", "resumed"), [(2, [1, 2, 3, 4, 5, 6]), (4, [3, 4, 5, 6]), (6, [5, 6])])
def test_a_killed_run_resumes_to_the_same_bytes(tmp_path: Path, killed_at: int, resumed: list[int]) -> None:
    whole = Toy(None)
    course = whole.run()
    with pytest.raises(KeyboardInterrupt):
        Toy(tmp_path, killed_at=killed_at).run()
    again = Toy(tmp_path)
    assert again.run() == course
    assert again.taken == resumed
    assert torch.equal(again.point, whole.point)
    assert torch.equal(again.best["point"], whole.best["point"])


def test_checkpoints_may_come_more_often_than_evaluations(tmp_path: Path) -> None:
    killed = Toy(tmp_path, killed_at=6, evaluate_every=4)
    killed.checkpoint_every = 1
    with pytest.raises(KeyboardInterrupt):
        killed.run()
    resumed = Toy(tmp_path, evaluate_every=4)
    resumed.run()
    assert resumed.taken == [6]


def test_the_best_is_kept_and_not_the_last() -> None:
    loop = Toy(None, steps=8, evaluate_every=1, learning_rate=2.0, warmup_steps=0, schedule="constant")
    course = loop.run()
    distances = [scores["distance"] for scores in course.scores.values()]
    assert course.best["distance"] == min(distances) < distances[-1]
    restore_weights(loop.weights, loop.best)
    assert loop.evaluate() == course.best


def test_patience_ends_a_run_and_a_resumed_one_takes_no_step_more(tmp_path: Path) -> None:
    impatient: dict[str, Any] = {"steps": 40, "learning_rate": 5.0, "warmup_steps": 0, "schedule": "constant"}
    for taken in (range(1, 41), ()):
        loop = Toy(tmp_path, **impatient)
        loop.patience = 2
        course = loop.run()
        assert loop.taken == list(taken)[: len(course.loss)]
        assert len(course.loss) < 40


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        ("linear", [0.5, 1.0, 0.8, 0.6, 0.4, 0.2]),
        ("constant", [0.5, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ("cooldown", [0.5, 1.0, 1.0, 1.0, 1.0, 0.5]),
    ],
)
def test_the_learning_rate_rises_then_falls_or_stays_and_is_never_zero(schedule: str, rates: list[float]) -> None:
    loop = Toy(None, learning_rate=1.0, schedule=schedule)
    loop.run()
    assert loop.rates == pytest.approx(rates)


def test_a_loss_that_is_no_number_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Toy(None)
    monkeypatch.setattr(loop, "gradients", lambda _: float("nan"))
    with pytest.raises(RelvecError, match="The loss is nan at step 1; lower the learning rate"):
        loop.run()


def test_a_run_without_a_score_keeps_its_last_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Toy(None)
    loop.evaluates_start = False
    monkeypatch.setattr(loop, "evaluate", dict)
    assert loop.run().best_step == 6
    assert torch.equal(loop.best["point"], loop.point)


def test_logs_are_written_where_tensorboard_is_installed(tmp_path: Path) -> None:
    loop = Toy(None)
    loop.logs = tmp_path / "logs"
    loop.run()
    assert any(loop.logs.iterdir())


def test_a_checkpoint_of_another_run_is_not_mixed_in(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        Toy(tmp_path, killed_at=4).run()
    with pytest.raises(RelvecError, match="another base, other settings or other data; remove it"):
        Toy(tmp_path, job="another").run()


@pytest.mark.parametrize("content", [b"nonsense", None])
def test_a_file_that_is_no_checkpoint_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / CHECKPOINT_NAME
    if content is None:
        torch.save({"job": "toy", "train_loss": {}}, path)  # of an earlier version
    else:
        path.write_bytes(content)
    with pytest.raises(RelvecError, match="is not a checkpoint of a run; remove it to start again"):
        Toy(tmp_path).run()


def test_a_checkpoint_that_was_half_written_goes_with_the_next(tmp_path: Path) -> None:
    left = tmp_path / f".{CHECKPOINT_NAME}.x1y2.pt"
    left.touch()
    Toy(tmp_path, steps=2).run()
    assert [path.name for path in tmp_path.iterdir()] == [CHECKPOINT_NAME]
