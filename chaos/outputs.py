"""Kills, several writers, full disks and little memory: what every command that writes must survive."""

import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from command import Command, Ended, start
from world import Job, World, cache_in, content, emptied, leftovers

MEMORY_BYTES = (4 << 20, 64 << 20, 256 << 20)
DISK_KILOBYTES = (64, 160, 400)

Case = tuple[str, str]
"""What was tried, and what was wrong: "" if nothing was."""


def kills(world: World, times: int, draw: random.Random) -> Iterator[Case]:
    """Kill -9 at a random moment; the same command again must end in the bytes of an undisturbed run."""
    for job in world.jobs():
        wanted, seconds = undisturbed(world, job)
        for number in range(times):
            folder = world.new()
            moment = draw.uniform(0, seconds)
            started = job.start(folder)
            started.kill(moment)
            started.wait()
            yield f"{job.name}, kill {number} after {moment:.2f} s", _wrong_after(job, folder, wanted)


def several_writers(world: World) -> Iterator[Case]:
    """Two and four runs of one job, or of two jobs, with one output: one wins, others are refused or find it done."""
    for job in world.jobs():
        wanted, _ = undisturbed(world, job)
        for count, mixed in ((2, False), (4, False), (2, True), (4, True)):
            folder = world.new()
            started = [job.start(folder, other=mixed and number % 2 == 1) for number in range(count)]
            ended = [each.wait() for each in started]
            problems = [each.problem for each in ended if each.problem]
            if not any(each.code == 0 for each in ended):
                problems.append(f"nobody won: {ended[0].complaint[:200]}")
            if not mixed and not problems and content(folder, job.output) != wanted:
                problems.append("the output is another")
            if mixed and job.other and not problems:
                problems += _mixture(job, folder)
            problems += [f"left: {left}" for left in leftovers(folder)[:1]]
            emptied(folder)
            yield f"{job.name}, {count} writers{' of two jobs' if mixed else ''}", "; ".join(problems)


def full_disk(world: World) -> Iterator[Case]:
    """A small file system for output and cache: one sentence, and with more room the right output."""
    for job in world.jobs():
        wanted, _ = undisturbed(world, job)
        for size in DISK_KILOBYTES:
            folder = world.new()
            mount = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(folder)]
            if subprocess.run(mount, capture_output=True).returncode:
                continue  # only root may mount
            try:
                problem = job.run(folder).problem
                subprocess.run(["mount", "-o", "remount,size=100m", str(folder)], check=True)
                problem = problem or _wrong_after(job, folder, wanted, empty=False)
            finally:
                subprocess.run(["umount", "-l", str(folder)], check=True)
            yield f"{job.name}, disk of {size} kB", problem


def little_memory(world: World) -> Iterator[Case]:
    """A limit to the memory: one sentence, or an abort by a library, and without the limit the right output."""
    for job in world.jobs():
        wanted, _ = undisturbed(world, job)
        for size in MEMORY_BYTES:
            folder = world.new()
            ended = job.run(folder, more_memory=size)
            problem = "" if ended.code < 0 else ended.problem
            yield f"{job.name}, {size >> 20} MB more", problem or _wrong_after(job, folder, wanted)


def readers_during_writers(world: World, seconds: float) -> Iterator[Case]:
    """An index is read while another process adds to it and takes away: every answer is that of a whole index."""
    folder = world.new()
    model, more = str(world.model), folder / "more.txt"
    more.write_text("cat:cats\ndog:dogs\n", encoding="utf-8")

    def begin(*words: object) -> Command:
        return start(*words, folder=folder, environment=cache_in(folder))

    begin("index", "build", world.pairs, "-m", model, "-o", "index").wait()
    ask = ("neighbours", "Rome:Italy", "--index", "index", "-m", model, "-k", "30", "--json")
    answers = {begin(*ask).wait().output}
    begin("index", "add", "index", more, "-m", model).wait()
    answers.add(begin(*ask).wait().output)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for change in (("remove", "index", more), ("add", "index", more, "-m", model)):
            writer, readers = begin("index", *change), [begin(*ask) for _ in range(3)]
            for reader in readers:
                ended = reader.wait()
                problem = ended.complaint[:200] if ended.code else "" if ended.output in answers else "a wrong answer"
                yield f"reader beside index {change[0]}", problem
            yield f"index {change[0]} beside readers", writer.wait().problem
    emptied(folder)


def undisturbed(world: World, job: Job) -> tuple[dict[str, str], float]:
    """What the job writes, and how long it takes."""
    if job.name not in _UNDISTURBED:
        folder = world.new()
        start = time.perf_counter()
        ended = job.run(folder)
        _UNDISTURBED[job.name] = content(folder, job.output), time.perf_counter() - start
        if ended.code or not _UNDISTURBED[job.name][0]:
            raise SystemExit(f"{job.name} fails undisturbed: {ended.complaint}")
        emptied(folder)
    return _UNDISTURBED[job.name]


_UNDISTURBED: dict[str, tuple[dict[str, str], float]] = {}


def _wrong_after(job: Job, folder: Path, wanted: dict[str, str], *, empty: bool = True) -> str:
    """What is wrong once the job was run again after a disturbance, and once more when it is done."""
    again, once_more = job.run(folder), job.run(folder)
    found, left = content(folder, job.output), leftovers(folder)
    if empty:
        emptied(folder)
    for ended in (again, once_more):
        if ended.code:
            return f"the same command again: {ended.problem or ended.complaint.strip()[:250]}"
    if found != wanted:
        differing = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
        return f"other bytes than undisturbed: {', '.join(differing)}"
    return f"left: {', '.join(left)}" if left else ""


def _mixture(job: Job, folder: Path) -> list[str]:
    """Of two jobs, one made the output: it is done, and the other is refused."""
    ended: list[Ended] = [job.start(folder, other=other).wait() for other in (False, True)]
    if job.name in ("evaluate", "fetch"):  # both results are kept
        return [each.problem or each.complaint[:200] for each in ended if each.code]
    codes = [each.code for each in ended]
    return [] if sorted(codes) == [0, 2] else [f"exit codes {codes} afterwards"]
