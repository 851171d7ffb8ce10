from relvec.data.overlap import without_testing
from relvec.data.sources import load
from relvec.learned_prompts.settings import Subject


def test_no_prompt_is_learned_from_relations_that_are_kept_for_testing() -> None:
    bundled = load("bundled")
    assert Subject(data=["bundled"]).relations(None) == without_testing(bundled) != bundled
