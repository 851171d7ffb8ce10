"""The baselines by name. To add one, write a file with `BASELINE` and name it here."""

from collections.abc import Iterable

from relvec.baselines import chance, few_shot, pair_vectors, pmi, proportion, saved_predictions, word_vectors
from relvec.baselines.baseline import Baseline
from relvec.errors import RelvecError, one_of
from relvec.settings import Settings, named_values

BASELINES: dict[str, Baseline] = {
    module.BASELINE.name: module.BASELINE
    for module in (chance, pmi, word_vectors, pair_vectors, proportion, few_shot, saved_predictions)
}


def chosen_settings(name: str, given: Iterable[str], task: str) -> Settings:
    """The settings of a baseline from `name=value` texts, checked.

    >>> chosen_settings("word-vectors", ["vectors=glove.txt"], "analogy")
    WordVectorSettings(vectors='glove.txt', features='diff', pairs='')
    """
    baseline = BASELINES[one_of("baseline", name, BASELINES)]
    if task not in baseline.tasks:
        raise RelvecError(f"The baseline {name} cannot be scored on {task}; it is for {', '.join(baseline.tasks)}.")
    values = named_values(given)
    fields = baseline.settings.model_fields
    for key in fields.keys() - values.keys() if values.keys() <= fields.keys() else ():
        if fields[key].is_required():
            raise RelvecError(f"The baseline {name} needs {key}, {fields[key].description}; give --set {key}=VALUE.")
    return baseline.settings.checked(values, where=f"Baseline {name}: ")
