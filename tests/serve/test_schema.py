"""Whatever the OpenAPI document allows is answered as it says, and what it forbids is refused."""

from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode

from relvec import PairIndex, RelBERT
from relvec.naming import Catalogue

EXAMPLES = 25
"""Of each endpoint, as many that are allowed and as many that are not."""


def test_every_answer_is_as_documented(serving: Any, tiny: RelBERT, catalogue: Catalogue) -> None:
    tiny.catalogue = catalogue
    # It has tokens for all letters, but takes fewer of them than a word may have letters.
    tiny.token_ids = lambda pairs, truncate=False: type(tiny).token_ids(tiny, pairs, True)  # type: ignore[method-assign]
    index = PairIndex.of(tiny, [("Paris", "France"), ("Tokyo", "Japan"), ("cup", "tea")])
    with serving(tiny, index=index) as client:
        schema = schemathesis.openapi.from_url(f"{client.url}/openapi.json")
        found: Any = list(schema.get_all_operations())
        operations = [each.ok() for each in found]
        assert len(operations) >= 10
        for operation in operations:
            assert set(statuses(operation.as_strategy(generation_mode=GenerationMode.POSITIVE))) == {200}
            if operation.body:
                assert set(statuses(operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))) == {422}


def statuses(cases: Any) -> list[int]:
    """Of the answers, each of which must be as documented, and no failure of the server."""
    found = []

    @given(case=cases)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def every_answer(case: Any) -> None:
        answer = case.call()
        case.validate_response(answer)
        found.append(answer.status_code)

    every_answer()
    return found
