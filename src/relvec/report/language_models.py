"""The table of language models: with and without fine-tuning, one beside the other."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from relvec.evaluation.records import Record
from relvec.report.analogy import MEAN_OF, SHOWN, accuracies, accuracy_columns, systems_of
from relvec.report.layout import Entry, commands, labelled, ranked
from relvec.report.published import published
from relvec.report.sizes import size_warnings
from relvec.report.table import OTHER_SIZE, Column, Table, Value

KINDS = {"vanilla": "vanilla", "relation model": "fine-tuned"}


def language_model_table(records: Sequence[Record]) -> Table | None:
    """Accuracy by language model, and what fine-tuning gains over the vanilla model (the paper's Figure 3, Table 7)."""
    systems = [
        system for system in systems_of(records) if system.facts.get("base") and system.facts.get("kind") in KINDS
    ]
    entries = ranked(accuracies(systems))
    if not entries:
        return None
    entries = [(system, values | _gain((system, values), entries)) for system, values in entries]
    places = {base: place for place, base in reversed(list(enumerate(_base(entry) for entry in entries)))}
    entries.sort(key=lambda entry: places[_base(entry)])  # stable: the language model with the best system comes first
    frame = labelled(entries, SHOWN)
    titles = ("Language model", frame.titles[0], "Tuning", *frame.titles[1:])
    rows = [
        replace(row, labels=(_base(entry), row.labels[0], KINDS[row.kind], *row.labels[1:]))
        for row, entry in zip(frame.rows, entries, strict=True)
    ]
    theirs = [row for row in [*published("analogy_language_models"), *published("analogy")] if row.base]
    return Table(
        name="language_models",
        title="Language models, vanilla and fine-tuned",
        description="Accuracy (%) on analogy questions; the gain is that over the vanilla model with the same prompt, "
        "else over the best vanilla one, on the mean of the datasets that both have." + frame.shared,
        label_titles=titles,
        columns=(*accuracy_columns(systems), Column("gain", "gain", best="none")),
        rows=(*rows, *replace(frame, titles=titles).published(theirs, {"mean": MEAN_OF})),
        warnings=size_warnings(record for system in systems for record in system.records),
        commands=commands([system for system, _ in entries]),
    )


def _base(entry: Entry) -> str:
    return str(entry[0].facts["base"])


def _gain(entry: Entry, entries: Sequence[Entry]) -> dict[str, Value]:
    """The mean over shared datasets minus that of the vanilla model of the same base, scored in the same way."""
    system, values = entry
    vanilla = [
        other
        for other in entries
        if other[0].facts["kind"] == "vanilla" and _base(other) == _base(entry) and other[0].settings == system.settings
    ]
    if system.facts["kind"] == "vanilla" or not vanilla:
        return {}
    # The entries are ranked, so the first is the best.
    prompt = {name: system.facts.get(name) for name in ("template", "pooling")}
    same = [other for other in vanilla if all(other[0].facts.get(name) == prompt[name] for name in prompt)]
    theirs = (same or vanilla)[0][1]
    shared = [name for name in MEAN_OF if name in values and name in theirs]
    if not shared:
        return {}
    is_other_size = any(found[name].mark for found in (values, theirs) for name in shared)
    gain = fmean(values[name].mean - theirs[name].mean for name in shared)
    return {"gain": Value(gain, seeds=values[shared[0]].seeds, mark=OTHER_SIZE if is_other_size else "")}
