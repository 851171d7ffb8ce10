from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from relvec import RelvecError
from relvec.distillation import distiller
from relvec.distillation.pool import Sources
from relvec.distillation.settings import StaticSettings
from relvec.model.torch_backend import TorchRelBERT
from relvec.prompts import Template

Student = Callable[..., TorchRelBERT]


@pytest.fixture
def student_of(pairs_file: Path, tmp_path: Path) -> Student:
    def made(teacher: Path, student: Path, **options: Any) -> TorchRelBERT:
        sources = Sources(files=(str(pairs_file),))
        found = distiller.make_distiller(teacher, student, tmp_path / "output", sources, **options)
        assert isinstance(found, distiller.Distiller)
        return found.model

    return made


def test_a_student_is_prompted_like_its_teacher_unless_told_otherwise(
    student_of: Student, tiny_folder: Path, small_folder: Path
) -> None:
    teacher = TorchRelBERT.from_pretrained(tiny_folder)
    student = student_of(tiny_folder, small_folder)
    assert (student.template, student.pooling) == (teacher.template, teacher.pooling)
    student = student_of(tiny_folder, small_folder, template="4", pooling="mask")
    assert (student.template, student.pooling) == (Template.of(4), "mask")


def test_a_prompt_that_the_student_cannot_read_is_refused(
    student_of: Student, tiny: TorchRelBERT, tiny_folder: Path, small_folder: Path, tmp_path: Path
) -> None:
    maskless = TorchRelBERT.from_pretrained(small_folder)
    maskless.tokenizer.mask_token = None
    maskless.encoder.save_pretrained(tmp_path / "maskless")
    maskless.tokenizer.save_pretrained(tmp_path / "maskless")
    with pytest.raises(RelvecError, match=r"has a <mask>, but the tokenizer has none; use a template without <mask>"):
        student_of(tiny_folder, tmp_path / "maskless")
    assert student_of(tiny_folder, tmp_path / "maskless", template="[h] and [t]", pooling="average").dim == 8
    word = next(token for token in tiny.tokenizer.get_vocab() if token.startswith("Ġ") and len(token) > 2)
    learned = Template.from_tokens([word, "[h]", "<mask>", "[t]"])
    TorchRelBERT(tiny.encoder, tiny.tokenizer, learned, name="learned").save_pretrained(tmp_path / "learned")
    with pytest.raises(RelvecError, match="is not in the vocabulary; use the model it was made for, or another temp"):
        student_of(tmp_path / "learned", small_folder)
    assert student_of(tmp_path / "learned", tiny_folder).template.tokens == learned.tokens


@pytest.mark.parametrize("options", [{"word_vectors": "glove.txt"}, {"settings": StaticSettings()}])
def test_what_only_a_static_student_has_is_refused_for_an_encoder(
    student_of: Student, tiny_folder: Path, small_folder: Path, options: dict[str, Any]
) -> None:
    with pytest.raises(RelvecError, match="Only the student `static` has word vectors and StaticSettings; leave them"):
        student_of(tiny_folder, small_folder, **options)
