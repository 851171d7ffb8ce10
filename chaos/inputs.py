"""Malformed inputs over all commands: exit code 2, one line, no traceback."""

import json
import random
from collections.abc import Iterator

from command import run
from outputs import Case
from world import World, cache_in, emptied

LONG = "x" * 300
PLACES = (
    "",
    " ",
    LONG,
    "nowhere/there",
    "/dev/null",
    "/proc/self/mem",
    "\udcff",
    "a\0b",
    "..",
    "~nobody/x",
    "-",
    "人",
    "*",
    "CON",
)
NUMBERS = ("", "-1", "0", "1e9", "nan", "inf", "-inf", "99999999999999999999", "1.5", "one", "0x10", "１")
TEXTS = (
    "",
    ":",
    "a:",
    ":b",
    "a:b:c",
    "a b",
    "\u202ea:b",
    "a:\U0001f600",
    '"',
    "'",
    "{}",
    "[h]",
    "<mask>",
    "[h] [t] [t]",
    "%s",
    "a\tb",
)
FILES = {
    "empty.csv": b"",
    "nul.csv": b"\0" * 100,
    "latin.csv": "é,à\n".encode("latin-1"),
    "ragged.csv": b"head,tail\na,b,c\n",
    "quote.csv": b'head,tail\n"a,b\n',
    "names.csv": b"head,head\na,b\n",
    "words.csv": b"head,tail\n,b\n",
    "long.csv": b"head,tail\n" + b"a" * 200_000 + b",b\n",
    "line.txt": b"a" * 2_000_000 + b"\n",
    "word.jsonl": b'{"head": "' + b"a" * 10_000_000 + b'", "tail": "b"}\n',
    "half.jsonl": b'{"head": "a", "tail"\n',
    "list.jsonl": b"[1, 2]\n",
    "deep.jsonl": b"[" * 5000 + b"]" * 5000 + b"\n",
    "number.jsonl": b'{"head": 1, "tail": 2}\n',
    "surrogate.jsonl": b'{"head": "\\ud800", "tail": "b"}\n',
    "not.parquet": b"PAR1 no PAR1",
    "not.npz": b"PK\3\4 no",
    "not.gz": b"\x1f\x8b\x08\0 no",
    "not.toml": b"loss = = 1\n",
    "wrong.toml": b"loss = 3\nsteps = 'many'\n",
    "not.bin": b"3 4\nword \0\0",
    "not.npy": b"\x93NUMPY\1\0 no",
    "scores.csv": b"relation,head,tail,score\nr,a,b,nan\nr,c,d,inf\n",
}


def malformed(world: World, count: int, draw: random.Random) -> Iterator[Case]:
    folder = world.new()
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    (folder / "folder").mkdir()
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text("{}")
    (folder / "index").mkdir()
    (folder / "index" / "meta.json").write_text(json.dumps({"format": 1, "probes": ""}))
    for _ in range(count):
        words = [word.encode(errors="surrogateescape").decode(errors="surrogateescape") for word in _words(world, draw)]
        if any("\0" in word for word in words):
            words = [word.replace("\0", "") for word in words]  # no program can be given one
        ended = run(
            *words, folder=folder, environment=cache_in(folder), typed=draw.choice(list(FILES.values()))[:10_000]
        )
        yield " ".join(words)[:150], ended.problem
    emptied(folder)


def _words(world: World, draw: random.Random) -> list[str]:
    """A command with something wrong in it: a place, a number, a text, a file or an option."""
    model, rated, pairs = str(world.model), str(world.rated), str(world.pairs)
    place, number, text = draw.choice(PLACES), draw.choice(NUMBERS), draw.choice(TEXTS)
    file = draw.choice([*FILES, "folder", "missing.csv", "missing.parquet", "missing.npz", "-"])
    bad_model = draw.choice([place, "model", "folder", file, f"{text}/{text}"])
    training = ["train", "--data", rated, "--base", model, "--set", "threshold=0", "--set", "steps=1"]
    setting = draw.choice(
        ["lora_rank", "learning_rate", "steps", "epochs", "seed", "top", "threshold", "warmup_steps", "patience"]
    )
    name = draw.choice(
        ["template", "pooling", "loss", "schedule", "loss_settings.margin", "nothing", "layers", "base_dtype"]
    )
    choices = [
        ["similarity", text, "a:b", "-m", model],
        ["similarity", "a:b", "c:d", "-m", bad_model],
        ["similarity", "a:b", "c:d", "-m", model, "--scoring", text],
        ["similarity", "a:b", "c:d", "-m", model, "--backend", text, "--device", draw.choice(["cuda", "tpu", text])],
        ["solve", "a:b", text, "-m", bad_model],
        ["neighbours", text, "--index", draw.choice(["index", "folder", place]), "-m", model],
        ["neighbours", "a:b", "--index", "index", "-m", model, "-k", number],
        ["complete", text, "::", text, "--index", "index"],
        ["embed", file, "-m", model, "-o", "out.npz"],
        ["embed", pairs, "-m", model, "-o", draw.choice([place, f"{LONG}.npz", "folder", "no/out.npz", "out.doc"])],
        ["embed", pairs, "-m", model, "-o", "out.npz", "--batch-size", number],
        ["embed", pairs, "-m", bad_model, "-o", "out.npz", "--dtype", text],
        ["index", "build", file, "-m", model, "-o", "new"],
        ["index", "build", pairs, "-m", model, "-o", draw.choice([place, "folder", "model", pairs]), "--kind", text],
        ["index", "add", draw.choice(["index", "folder", place]), file, "-m", model],
        ["index", "remove", draw.choice(["index", "folder", place]), file],
        ["index", "info", draw.choice(["index", "folder", place, file])],
        ["index", "import", file, "-o", "imported", "-m", model],
        ["index", "export", draw.choice(["index", "folder", place]), "-o", draw.choice([place, "v.npz", "v.doc"])],
        ["train", "--data", file, "--base", model, "--set", "steps=1", "-o", "new"],
        ["train", "--data", rated, "--base", bad_model, "--set", "threshold=0", "--set", "steps=1", "-o", "new"],
        ["train", "--config", file, "-o", "new"],
        [*training, "--set", f"{setting}={number}", "--dry-run", "-o", "new"],
        [*training, "--set", f"{name}={text}", "--dry-run", "-o", "new"],
        [*training, "--set", text, "-o", "new"],
        [*training, "--dry-run", "-o", draw.choice([place, pairs, f"{pairs}/x"])],
        ["merge", bad_model, "-o", "merged"],
        ["merge", model, "-o", draw.choice([place, pairs, model]), "--lora", number],
        ["distill", "--teacher", bad_model, "--student", model, "-o", "student", "--pairs", file],
        [
            "distill",
            "--teacher",
            model,
            "--student",
            model,
            "--pairs",
            pairs,
            "--steps",
            number,
            "--dry-run",
            "-o",
            place,
        ],
        ["prompt", "autoprompt", "--data", file, "--base", model, "-o", "prompt"],
        ["prompt", "ptuning", "--data", rated, "--base", model, "--lengths", text, "-o", "prompt"],
        [
            "prompt",
            "search",
            "--data",
            rated,
            "--base",
            model,
            "--lengths",
            f"{number},1,1",
            "--method",
            text,
            "-o",
            place,
        ],
        ["evaluate", "analogy", "--model", model, "--dataset", file, "--runs", "runs"],
        ["evaluate", "analogy", "--baseline", text, "--set", f"{text}={number}", "--dataset", str(world.questions)],
        ["evaluate", "classification", "--model", model, "--dataset", place, "--runs", "runs"],
        ["report", "--runs", draw.choice([place, "folder", file])],
        ["data", "check", file],
        ["fetch", bad_model],
        ["verify", bad_model],
        ["verify", draw.choice(["index", "folder", file])],
        [text, place],
        ["cache", text],
    ]
    return draw.choice(choices)
