import pytest

from relvec.errors import RelvecError
from relvec.prompts import MANUAL_TEMPLATES, Template


@pytest.mark.parametrize("number", MANUAL_TEMPLATES)
def test_each_manual_template_of_the_paper_fills(number: int) -> None:
    sentence = Template.of(number).fill(("Paris", "France"))
    assert "Paris" in sentence
    assert "France" in sentence
    assert "<mask>" in sentence
    assert "[" not in sentence


def test_a_number_may_be_written_as_text() -> None:
    assert Template.of("4") == Template.of(4)


def test_both_spellings_of_the_slots_are_one_template() -> None:
    assert Template("<subj> and <obj>") == Template("[h] and [t]")


def test_the_configuration_uses_the_published_spelling_and_reads_back() -> None:
    for template in (Template("[h] is the <mask> of [t]"), Template.from_tokens(["x", "[h]", "<mask>", "[t]"])):
        assert "<subj>" in template.to_config()["template"]
        assert Template.from_config(template.to_config()) == template


def test_a_learned_template_keeps_its_readable_text_and_is_decided_by_its_tokens() -> None:
    template = Template.from_tokens(["es", "Ġen", "[h]", "[t]"], "es en [h] [t]")
    assert template.to_config() == {
        "template": "es en <subj> <obj>",
        "template_tokens": ["es", "Ġen", "[h]", "[t]"],
    }
    assert Template.from_config(template.to_config()) == template


def test_a_word_that_looks_like_a_slot_stays_a_word() -> None:
    assert Template("[h] and [t]").fill(("[t]", "[h]")) == "[t] and [h]"


@pytest.mark.parametrize("text", ["", "no slots", "[h] alone", "only [t] and <mask>"])
def test_a_template_without_both_slots_is_refused(text: str) -> None:
    with pytest.raises(RelvecError, match=r"write both \[h\] and \[t\]"):
        Template(text)


@pytest.mark.parametrize("number", [0, 6, "7"])
def test_an_unknown_number_is_refused(number: int | str) -> None:
    with pytest.raises(RelvecError, match="choose 1 to 5"):
        Template.of(number)
