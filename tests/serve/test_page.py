"""The page as people use it, in a real browser: `make browser`."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relvec import PairIndex, RelBERT

pytestmark = pytest.mark.browser

sync_api = pytest.importorskip("playwright.sync_api")
expect = sync_api.expect
expect.set_options(timeout=20_000)
CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium; apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Tab:
    """A page of the browser that asks no other server and logs no error."""

    def __init__(self, page: Any, url: str) -> None:
        self.page, self.url = page, url
        self.asked: list[str] = []
        self.errors: list[str] = []
        page.set_default_timeout(20_000)
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: self.errors.append(said.text) if "Refused to" in said.text else None)

    def open(self, address: str = "") -> Any:
        self.page.goto("about:blank")  # a change of what follows # alone would not load the page anew
        self.page.goto(f"{self.url}/{address}")
        return self.page


@pytest.fixture
def tab(browser: Any, client: Any) -> Iterator[Tab]:
    context = browser.new_context(accept_downloads=True)
    tab = Tab(context.new_page(), client.url)
    yield tab
    context.close()
    assert tab.errors == []
    assert [url for url in tab.asked if not url.startswith((client.url, "about:", "blob:"))] == []


def text(found: Any) -> str:
    return " ".join(found.inner_text().split())


def test_a_typed_pair_is_explained_and_its_link_says_the_same(tab: Tab) -> None:
    page = tab.open()
    page.get_by_label("First word").first.fill("Paris")
    page.get_by_label("Second word").first.fill("France")
    senses = page.locator("#pair .senses li")
    expect(senses.first).to_contain_text("Paris")
    expect(page.locator("#pair .neighbours li").first).to_be_visible()
    expect(page.locator("#pair svg text.here")).to_have_text("Paris : France")
    said = text(senses.first)
    assert page.evaluate("location.hash") == "#pair?head=Paris&tail=France"
    page.reload()
    expect(senses.first).to_be_visible()
    assert text(senses.first) == said
    assert not any("Paris" in url.partition("#")[0] for url in tab.asked)  # no log along the way has the words


def test_an_example_and_a_neighbour_can_be_clicked_and_left_again(tab: Tab) -> None:
    page = tab.open()
    page.get_by_role("link", name="wheel : bicycle").click()
    expect(page.get_by_label("First word").first).to_have_value("wheel")
    neighbour = page.locator("#pair .neighbours a").first
    head = neighbour.inner_text().split(" : ")[0]
    neighbour.click()
    expect(page.get_by_label("First word").first).to_have_value(head)
    page.go_back()
    expect(page.get_by_label("First word").first).to_have_value("wheel")


def test_the_keyboard_is_enough(tab: Tab) -> None:
    page = tab.open("#pair?head=a&tail=b")
    page.locator("#pair .senses li").first.wait_for()
    page.keyboard.press("/")
    page.keyboard.press("Control+a")
    page.keyboard.type("cup:")
    page.keyboard.press("Control+a")
    page.keyboard.type("tea")
    page.keyboard.press("Enter")
    expect(page.locator("#pair svg text.here")).to_have_text("cup : tea")
    page.get_by_role("button", name="The other way round").press("Enter")
    expect(page.locator("#pair svg text.here")).to_have_text("tea : cup")
    fields = page.locator("input, textarea, select")
    assert all(fields.evaluate_all("all => all.map(each => each.labels.length > 0 || each.ariaLabel !== null)"))


def test_words_are_text_whatever_they_hold(tab: Tab) -> None:
    page = tab.open("#pair?head=%3Cimg src=x onerror=alert(1)%3E&tail=%3Cb%3Ebold%3C/b%3E")
    expect(page.locator("#pair .senses li").first).to_be_visible()
    assert page.locator("main img, main .senses b").count() == 0


def test_an_analogy_shows_a_bar_for_each_choice(tab: Tab, model: RelBERT) -> None:
    page = tab.open("#analogy")
    page.get_by_label("The pair").fill("Paris : France")
    page.get_by_label("The choices, one a line").fill("cup : tea\nParis : France\nbaker, bread")
    page.get_by_role("button", name="Answer").click()
    bars = page.locator("#analogy .bars li")
    expect(bars).to_have_count(3)
    expect(bars.first).to_have_class("best")
    assert "Paris : France" in text(bars.first)
    score = model.similarity(("Paris", "France"), ("cup", "tea"))
    assert any(f"{score:.2f}".replace("-", "−") in text(bar) for bar in bars.all())


def test_a_missing_word_is_found(tab: Tab) -> None:
    page = tab.open("#complete?a=Paris&b=France&c=Tokyo")
    expect(page.locator("#complete .answer")).to_contain_text("Tokyo is to")
    assert page.locator("#complete .bars li").count() > 1


def test_several_pairs_make_a_table_of_similarities(tab: Tab, model: RelBERT) -> None:
    page = tab.open("#compare")
    page.get_by_label("Pairs, one a line").fill("Paris:France\ncup:tea\nbaker:bread")
    page.get_by_role("button", name="Compare").click()
    cells = page.locator("#compare td:not(:first-child), #compare tbody td")
    expect(page.locator("#compare tbody tr")).to_have_count(3)
    expected = model.similarity(("Paris", "France"), ("cup", "tea"))
    assert text(page.locator("#compare tbody tr").first.locator("td").nth(1)) == f"{expected:.2f}".replace("-", "−")
    assert cells.count() >= 9


def test_a_table_gives_vectors_and_names_to_download(tab: Tab, model: RelBERT, tmp_path: Path) -> None:
    page = tab.open("#table")
    rows = [(f"word {number}", f"other {number}") for number in range(300)]  # more than a request may have
    page.get_by_label("Paste two columns").fill("\n".join("\t".join(row) for row in rows))
    expect(page.locator("#table .count").first).to_have_text("300 pairs")
    page.get_by_role("button", name="Make the vectors").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="vectors.tsv").click()
    download.value.save_as(tmp_path / "vectors.tsv")
    lines = [line.split("\t") for line in (tmp_path / "vectors.tsv").read_text().splitlines()]
    assert [tuple(line[:2]) for line in lines[1:]] == rows
    np.testing.assert_allclose(np.array([line[2:] for line in lines[1:]], dtype=float), model.encode(rows), atol=1e-4)
    page.get_by_role("button", name="Name the relations").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="relations.tsv").click()
    download.value.save_as(tmp_path / "relations.tsv")
    named = (tmp_path / "relations.tsv").read_text().splitlines()
    assert named[0].split("\t")[:3] == ["head", "tail", "relation"]
    assert len(named) == 301


def test_an_error_stands_where_it_belongs_and_goes_when_mended(tab: Tab) -> None:
    page = tab.open("#analogy")
    page.get_by_label("The pair").fill("Paris : France")
    choices = page.get_by_label("The choices, one a line")
    choices.fill("cup : tea\nnothing")
    page.get_by_role("button", name="Answer").click()
    expect(page.locator("#analogy .error")).to_contain_text("“nothing” is not a pair")
    expect(choices).to_have_attribute("aria-invalid", "true")
    choices.fill("cup : tea")
    page.get_by_role("button", name="Answer").click()
    expect(page.locator("#analogy .bars li")).to_have_count(1)
    expect(page.locator("#analogy .error")).to_be_empty()
    page = tab.open(f"#pair?head=cup&tail={'long%20' * 39}")  # too long for the tiny model
    expect(page.locator("#pair .error")).to_contain_text("tokens where the model takes")
    page = tab.open(f"#pair?head=cup&tail={'long%20' * 60}")  # too long for the server
    expect(page.locator("#pair .error")).to_have_text(
        "Second word is 'long long long long long long long long ...'; use 200 characters or fewer."
    )
    expect(page.get_by_label("Second word").first).to_have_attribute("aria-invalid", "true")


@pytest.mark.parametrize("width", [1100, 360])
def test_a_long_word_is_seen_whole(browser: Any, client: Any, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 740})
    page.goto(f"{client.url}/#pair?head=otolaryngologist&tail=hypothyroidism")
    fields = page.locator("#pair .headword input")
    expect(fields.first).to_have_value("otolaryngologist")
    assert fields.evaluate_all("all => all.every(each => each.scrollWidth <= each.clientWidth)")
    page.close()


def test_the_pair_and_its_likeliest_relation_are_named_in_the_picture(tab: Tab) -> None:
    page = tab.open("#pair?head=Paris&tail=France")
    expect(page.locator("#pair svg text.here")).to_have_text("Paris : France")
    expect(page.locator("#pair svg text.best")).to_be_visible()
    boxes = page.locator("#pair svg text").evaluate_all(
        "all => all.map(each => each.getBoundingClientRect()).map(({x, y, right, bottom}) => [x, y, right, bottom])"
    )
    left, top, right, bottom = page.locator("#pair svg").evaluate(
        "svg => [svg.getBoundingClientRect()].flatMap(({x, y, right, bottom}) => [x, y, right, bottom])"
    )
    assert all(left <= box[0] and box[2] <= right and top - 4 <= box[1] and box[3] <= bottom + 4 for box in boxes)


def test_a_server_that_has_gone_is_told_of(tab: Tab) -> None:
    page = tab.open("#pair?head=cup&tail=tea")
    page.locator("#pair .senses li").first.wait_for()
    page.route("**/explain", lambda route: route.abort())
    page.get_by_label("First word").first.fill("pot")
    expect(page.locator("#pair .error")).to_have_text("The server does not answer; is it still running?")


def test_a_key_is_asked_for_once(browser: Any, serving: Any, model: RelBERT, index: PairIndex) -> None:
    with serving(model, index=index, api_key="sesame") as client:
        tab = Tab(browser.new_page(), client.url)
        page = tab.open("#pair?head=cup&tail=tea")
        page.get_by_label("Key").fill("sesame")
        page.get_by_role("button", name="Use it").click()
        expect(page.locator("#pair .senses li").first).to_be_visible()
        page.reload()
        expect(page.locator("#pair .senses li").first).to_be_visible()
        expect(page.get_by_label("Key")).to_be_hidden()
        page.close()


def test_models_can_be_chosen(browser: Any, serving: Any, model: RelBERT, tiny: RelBERT) -> None:
    with serving(model, tiny) as client:
        page = Tab(browser.new_page(), client.url).open("#compare?pair=cup:tea&pair=a:b")
        first = page.locator("#compare tbody tr").first.locator("td").nth(1)
        expect(first).to_be_visible()
        expected = tiny.similarity(("cup", "tea"), ("a", "b"))
        page.get_by_label("model").select_option("tiny-roberta")
        expect(first).to_have_text(f"{expected:.2f}".replace("-", "−"))
        assert "model=tiny-roberta" in page.evaluate("location.hash")
        page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_paper_and_ink_follow_the_readers_wish(browser: Any, client: Any, scheme: str) -> None:
    page = browser.new_page(color_scheme=scheme)
    page.goto(client.url)
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (sum(paper) / 3 > 128) == (scheme == "light")
    page.close()


@pytest.mark.parametrize(
    "address",
    [
        "#pair?head=Paris&tail=France",
        "#analogy?stem=a:b&choice=c:d",
        "#complete?a=a&b=b&c=cup",
        "#compare?" + "&pair=cup:tea" * 9,
        "#table",
        "docs",
    ],
    ids=lambda address: address.split("?")[0],
)
def test_a_phone_need_not_scroll_sideways(browser: Any, client: Any, address: str) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 740})
    page.goto(f"{client.url}/{address}")
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.close()


def test_the_reference_lists_every_endpoint(tab: Tab) -> None:
    page = tab.open("docs")
    expect(page.locator("article").first).to_be_visible()
    assert "POST /embed" in text(page.locator("article").first)
    assert page.locator("article").count() >= 10
