import pytest

from relvec.naming import filled


@pytest.mark.parametrize(
    ("sentence", "pair", "expected"),
    [
        ("a X uses the Y", ("umpire", "whistle"), "an umpire uses the whistle"),
        ("a X uses the Y", ("unicorn", "horn"), "a unicorn uses the horn"),
        ("a X uses the Y", ("heir", "key"), "an heir uses the key"),
        ("a X lives in Y", ("Dane", "Denmark"), "Dane lives in Denmark"),
        ("a X are Y", ("scissors", "sharp"), "scissors are sharp"),
        ("a X is there", ("boss", "-"), "a boss is there"),
        ('"Y" is the plural of "X"', ("ox", "oxen"), '"oxen" is the plural of "ox"'),
        ("X is Y", ("Y", "X"), "Y is X"),
    ],
)
def test_articles_fit_the_words(sentence: str, pair: tuple[str, str], expected: str) -> None:
    assert filled(sentence, pair) == expected
