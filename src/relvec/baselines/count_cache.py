"""Counts of a corpus that stay, also those of a pass that was killed."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock

from relvec.baselines.cooccurrence import Counts, MeetingCounter, Term
from relvec.errors import RelvecError
from relvec.io.files import written_whole


class CountCache:
    """One JSON file for each corpus and window, which grows with every pass, and one for a pass that is under way."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:  # before hours of counting, not after
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RelvecError(f"Cannot make {path.parent}: {error.strerror}; set RELVEC_CACHE.") from error

    def read(self) -> Counts:
        try:
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            terms = {tuple(text.split()): count for text, count in kept["terms"].items()}
            meetings = {(tuple(one.split()), tuple(other.split())): n for one, other, n in kept["meetings"]}
            return Counts(kept["tokens"], terms, meetings)
        except FileNotFoundError:
            return Counts()
        except (ValueError, KeyError, TypeError) as error:
            raise RelvecError(f"{self._path} holds no counts ({error}); remove it.") from error

    def add(self, new: Counts) -> Counts:
        """Keep further counts; return all."""
        try:
            with FileLock(self._path.with_suffix(".lock")):
                kept = self.read()
                counts = Counts(new.tokens, {**kept.terms, **new.terms}, {**kept.meetings, **new.meetings})
                data = {
                    "tokens": counts.tokens,
                    "terms": {" ".join(term): count for term, count in counts.terms.items()},
                    "meetings": [[" ".join(one), " ".join(two), n] for (one, two), n in counts.meetings.items()],
                }
                with written_whole(self._path) as partial:
                    partial.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
        except OSError as error:
            raise RelvecError(f"Cannot write {self._path}: {error.strerror}; set RELVEC_CACHE.") from error
        return counts

    def unfinished(self, meetings: Sequence[tuple[Term, Term]]) -> "UnfinishedPass":
        """The pass over the corpus that counts these meetings."""
        asked = hashlib.sha256(repr(meetings).encode()).hexdigest()[:8]
        return UnfinishedPass(self._path.with_suffix(f".{asked}.unfinished"))


class UnfinishedPass:
    """How far a pass has come, in blocks of text, and what was counted until there."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def restore(self, counter: MeetingCounter) -> int:
        """Bring a new counter to where the pass was saved last; return the blocks that are done."""
        try:
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            counter.restore(kept["counter"])
            return int(kept["blocks"])
        except FileNotFoundError:
            return 0
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RelvecError(f"{self._path} holds no counts ({error}); remove it.") from error

    def save(self, counter: MeetingCounter, blocks: int) -> None:
        """Keep what was counted in so many blocks."""
        with written_whole(self._path) as partial:
            partial.write_text(json.dumps({"blocks": blocks, "counter": counter.state()}), encoding="utf-8")

    def remove(self) -> None:
        """Forget the pass, once its counts are kept for good."""
        self._path.unlink(missing_ok=True)
