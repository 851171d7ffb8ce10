from pathlib import Path

import pytest

from relvec import RelvecError
from relvec.distillation.distiller import load_student
from relvec.model.torch_backend import TorchRelBERT
from relvec.prompts import Template


@pytest.fixture
def maskless_folder(small_folder: Path, tmp_path: Path) -> Path:
    model = TorchRelBERT.from_pretrained(small_folder)
    model.tokenizer.mask_token = None
    model.encoder.save_pretrained(tmp_path / "maskless")
    model.tokenizer.save_pretrained(tmp_path / "maskless")
    return tmp_path / "maskless"


def test_a_student_is_prompted_like_its_teacher_unless_told_otherwise(tiny_folder: Path, small_folder: Path) -> None:
    teacher = TorchRelBERT.from_pretrained(tiny_folder, template="I know: [h] <mask> [t]", pooling="mask")
    student = load_student(small_folder, teacher)
    assert (student.template, student.pooling) == (teacher.template, "mask")
    student = load_student(small_folder, teacher, template=4, pooling="average")
    assert (student.template, student.pooling) == (Template.of(4), "average")


def test_a_student_without_mask_token_cannot_take_a_mask(tiny_folder: Path, maskless_folder: Path) -> None:
    teacher = TorchRelBERT.from_pretrained(tiny_folder, pooling="mask")
    with pytest.raises(RelvecError, match=r"has no mask token .* with mask pooling; give a --template without <mask>"):
        load_student(maskless_folder, teacher)
    assert load_student(maskless_folder, teacher, template="[h] and [t]", pooling="average").dim == 8


def test_a_learned_prompt_of_another_vocabulary_is_refused(
    tiny: TorchRelBERT, tiny_folder: Path, small_folder: Path
) -> None:
    word = next(token for token in tiny.tokenizer.get_vocab() if token.startswith("Ġ") and len(token) > 2)
    learned = Template.from_tokens([word, "[h]", "<mask>", "[t]"])
    teacher = TorchRelBERT(tiny.encoder, tiny.tokenizer, learned, name="learned")
    with pytest.raises(RelvecError, match=r"learned prompt of the teacher learned .* give a --template"):
        load_student(small_folder, teacher)
    assert load_student(tiny_folder, teacher).template == learned
