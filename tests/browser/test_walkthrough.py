r"""The seven steps on the page on clocks: driven by mouse, finger and keyboard, and compared with posbook."""

import io
import json
import math
import re
from itertools import pairwise

import pytest
import torch
from PIL import Image, ImageChops, ImageStat

from posbook import frequencies, sinusoidal
from tests.book.pages import location
from tests.book.test_built import none
from tests.browser import views
from tests.browser.views import View

PATH = "absolute/clocks.html"
WORDS = ["the", "cat", "sat", "on", "the"]
TITLES = [
    "Two equal rows",
    "The raw index",
    "Index over length",
    "One clock repeats",
    "A row of clocks",
    "A fixed turn",
    "What a product reads",
]

pytestmark = [pytest.mark.browser, pytest.mark.book, pytest.mark.usefixtures("built", "browser")]
every_view = pytest.mark.parametrize(
    "view", [View(width, theme) for width in (1280, 360) for theme in ("light", "dark")], ids=str
)
both_widths = pytest.mark.parametrize("view", [View(1280, "light"), View(360, "dark")], ids=str)


def url(fragment=""):
    return (location() / PATH).as_uri() + fragment


# Every step with every word and with none: where everything lies, and what is cut.
PLACES = r"""() => {
  const walk = document.querySelector('walk-through'), places = new Set(), cut = [];
  for (const link of walk.querySelectorAll('.numbers a')) {
    link.click();
    for (const row of [...walk.querySelectorAll('.rows button'), null]) {
      (row ?? walk.querySelector('.rows [aria-pressed=true]')).click();
      const lies = ['.stage', '.step.now img', '.rows button', '.reading'].map(name => {
        const box = walk.querySelector(name).getBoundingClientRect();
        return [box.x, box.y + scrollY, box.width, box.height].map(Math.round).join(' ');
      });
      places.add(lies.join(', '));
      const read = walk.querySelector('.reading');
      if (read.scrollHeight > read.clientHeight + 1) cut.push(read.textContent);
    }
  }
  return [[...places], cut];
}"""


class Walk:
    """The walkthrough of an open page, as a reader sees it."""

    def __init__(self, page):
        self.page, self.element = page, page.locator("walk-through")
        self.previous, self.next = (self.element.locator(f"button.{name}") for name in ("previous", "next"))
        self.numbers = self.element.locator(".numbers a")
        self.rows = self.element.locator(".rows button")
        self.reading, self.said = self.element.locator(".reading"), self.element.locator(".said")

    def step(self):
        """The number of the one step that is seen, which the list and the address must name too."""
        seen = [i for i, step in enumerate(self.element.locator(".step").all(), 1) if step.is_visible()]
        current = [i for i, link in enumerate(self.numbers.all(), 1) if link.get_attribute("aria-current")]
        assert len(seen) == 1
        assert current == seen
        return seen[0]

    def fragment(self):
        return self.page.url.partition("#")[2]

    def followed(self):
        """The positions of the words that are followed."""
        return [p for p, row in enumerate(self.rows.all()) if row.get_attribute("aria-pressed") == "true"]

    def focused(self):
        return self.page.evaluate("document.activeElement.textContent || document.activeElement.ariaLabel")

    def picture(self):
        """What is seen of the picture of the step, buttons and all."""
        image = self.element.locator(".step.now img")
        image.scroll_into_view_if_needed()
        image.evaluate("el => el.decode()")
        return Image.open(io.BytesIO(image.screenshot())).convert("RGB")


@pytest.fixture
def walk(contexts):
    """The walkthrough in a view, on a page that nobody has used."""

    def show(view, fragment=""):
        # Fragments and history are kept by a page, so each test opens one of its own.
        if view not in contexts.contexts:
            contexts.contexts[view] = views.new_context(contexts.browser, view)
        page = contexts.contexts[view].new_page()
        opened.append(page)
        page.goto(url(fragment), wait_until="load")
        return Walk(page)

    opened = []
    yield show
    for page in opened:
        page.close()


@pytest.fixture
def touch(browser):
    """The walkthrough under a finger, which taps and swipes."""

    def show(view):
        context = browser.new_context(
            viewport={"width": view.width, "height": views.HEIGHTS[view.width]},
            color_scheme=view.theme,
            has_touch=True,
            reduced_motion="reduce",
            is_mobile=view.width < 500,
            offline=True,
        )
        opened.append(context)
        page = context.new_page()
        page.goto(url(), wait_until="load")
        return Walk(page), Finger(page)

    opened = []
    yield show
    for context in opened:
        context.close()


class Finger:
    def __init__(self, page):
        self.page, self.session = page, page.context.new_cdp_session(page)

    def tap(self, locator):
        locator.scroll_into_view_if_needed()
        box = locator.bounding_box()
        self.page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    def swipe(self, locator, across, down=0):
        locator.scroll_into_view_if_needed()
        box = locator.bounding_box()
        x, y = box["x"] + box["width"] / 2 - across / 2, box["y"] + box["height"] / 2 - down / 2
        for kind, part in [
            ("touchStart", 0),
            *[("touchMove", i / 8) for i in range(1, 9)],
            ("touchEnd", None),
        ]:
            points = [] if part is None else [{"x": x + part * across, "y": y + part * down}]
            self.session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


class TestTheSteps:
    @every_view
    def test_are_walked_by_mouse(self, walk, view):
        walk = walk(view)
        assert walk.step() == 1
        for step in range(2, 8):
            walk.next.click()
            assert (walk.step(), walk.fragment()) == (step, f"step-{step}")
        walk.next.click(force=True)  # it says that it is disabled
        assert walk.step() == 7
        for step in (3, 7, 1, 4):
            walk.numbers.nth(step - 1).click()
            assert (walk.step(), walk.fragment()) == (step, f"step-{step}")
        walk.previous.click()
        assert walk.step() == 3

    @every_view
    def test_are_walked_by_keyboard(self, walk, view):
        walk = walk(view)
        press = walk.page.keyboard.press
        walk.next.focus()
        press("Enter")
        assert walk.step() == 2
        press("Space")
        assert walk.step() == 3
        for key, step in [("ArrowRight", 4), ("ArrowLeft", 3), ("End", 7), ("ArrowRight", 7)]:
            press(key)
            assert walk.step() == step
        for key, step in [("Home", 1), ("ArrowLeft", 1)]:
            press(key)
            assert walk.step() == step
        press("Control+ArrowRight")  # somebody else's key
        assert walk.step() == 1
        walk.numbers.nth(5).focus()
        press("Enter")
        assert (walk.step(), walk.fragment()) == (6, "step-6")

    def test_leave_the_keys_of_the_rest_of_the_page_alone(self, walk):
        walk = walk(View(1280, "light"))
        walk.page.locator("details.solution summary").first.focus()
        for key in ("ArrowRight", "End"):
            walk.page.keyboard.press(key)
        assert walk.step() == 1

    @both_widths
    def test_are_walked_by_finger(self, touch, view):
        walk, finger = touch(view)
        finger.tap(walk.next)
        assert walk.step() == 2
        finger.tap(walk.numbers.nth(4))
        assert walk.step() == 5
        for across, step in [(-150, 6), (-150, 7), (-150, 7), (150, 6), (20, 6)]:
            finger.swipe(walk.rows.nth(2), across)
            walk.page.wait_for_timeout(50)
            assert (walk.step(), walk.followed()) == (step, [])
        for across, down in [(60, -150), (-70, 60)]:  # a scroll, and neither one nor the other
            finger.swipe(walk.rows.nth(2), across, down)
            walk.page.wait_for_timeout(50)
            assert walk.step() == 6

    @both_widths
    def test_have_an_address_each(self, walk, view):
        walk = walk(view, "#step-3")
        assert walk.step() == 3
        box, height = walk.element.bounding_box(), views.HEIGHTS[view.width]
        assert 0 <= box["y"] < height / 2
        walk.next.click()
        walk.numbers.nth(6).click()
        for go, step in [("back", 4), ("back", 3), ("forward", 4), ("forward", 7)]:
            walk.page.evaluate(f"history.{go}()")
            walk.page.wait_for_function(f"location.hash === '#step-{step}'")
            assert walk.step() == step
        walk.page.evaluate("location.hash = '#step-2'")
        walk.page.wait_for_timeout(50)
        assert walk.step() == 2
        for elsewhere in ("#exercises", "#step-8", "#step-0", "#step-x"):
            walk.page.evaluate(f"location.hash = '{elsewhere}'")
            walk.page.wait_for_timeout(50)
            assert walk.step() == 2

    def test_open_at_the_first_without_an_address_and_go_back_to_it(self, walk):
        walk = walk(View(1280, "light"))
        walk.next.click()
        walk.page.evaluate("history.back()")
        walk.page.wait_for_function("location.hash === ''")
        assert walk.step() == 1

    @both_widths
    def test_do_not_move_the_page(self, walk, view):
        walk = walk(view)
        walk.element.evaluate("el => el.scrollIntoView({behavior: 'instant'})")
        before = walk.page.evaluate("scrollY")
        assert before > 0
        walk.next.click()
        walk.numbers.nth(5).click()
        walk.page.keyboard.press("ArrowLeft")
        assert abs(walk.page.evaluate("scrollY") - before) <= 1, "a browser may round"

    def test_keep_the_focus(self, walk):
        walk = walk(View(1280, "light"))
        walk.next.focus()
        for _ in range(8):
            walk.page.keyboard.press("Enter")
        assert (walk.step(), walk.focused()) == (7, "Next")
        walk.page.keyboard.press("Home")
        assert walk.focused() == "Next"
        # Focus in a step that goes would fall back to the page's start.
        walk.page.evaluate("document.querySelector('.step.now .text p').tabIndex = 0")
        walk.element.locator(".step.now .text p").focus()
        walk.page.keyboard.press("ArrowRight")
        assert (walk.step(), walk.focused()) == (2, "2")

    def test_answer_the_keys_after_a_click_into_the_picture(self, walk):
        walk = walk(View(1280, "light"))
        walk.element.locator(".step.now .text").click()
        walk.page.keyboard.press("ArrowRight")
        assert walk.step() == 2

    def test_are_announced_when_the_reader_moves_and_not_before(self, walk):
        walk = walk(View(1280, "light"), "#step-2")
        assert walk.said.get_attribute("aria-live") == "polite"
        assert walk.said.text_content() == ""
        walk.next.click()
        assert walk.said.text_content() == "Step 3 of 7: Index over length"
        walk.page.evaluate("history.back()")
        walk.page.wait_for_function("location.hash === '#step-2'")
        assert walk.said.text_content() == "Step 2 of 7: The raw index"

    def test_have_names_for_those_who_hear_them(self, walk):
        walk = walk(View(1280, "light"))
        names = [link.get_attribute("aria-label") for link in walk.numbers.all()]
        assert names == [f"Step {i}: {title}" for i, title in enumerate(TITLES, 1)]
        assert [row.get_attribute("aria-label") for row in walk.rows.all()] == [
            f"{word}, position {p}" for p, word in enumerate(WORDS)
        ]
        states = [(walk.previous.get_attribute("aria-disabled"), walk.next.get_attribute("aria-disabled"))]
        walk.page.keyboard.press("Tab")
        walk.next.focus()
        walk.page.keyboard.press("End")
        states.append(
            (walk.previous.get_attribute("aria-disabled"), walk.next.get_attribute("aria-disabled"))
        )
        assert states == [("true", "false"), ("false", "true")]

    @every_view
    def test_nothing_jumps_and_fingers_find_their_targets(self, walk, view):
        walk = walk(view)
        places, cut = walk.page.evaluate(PLACES)
        assert len(places) == 1, places
        assert cut == []
        whole = walk.element.bounding_box()
        for target in [walk.previous, walk.next, *walk.numbers.all(), *walk.rows.all()]:
            box = target.bounding_box()
            assert min(box["width"], box["height"]) >= 44
            assert whole["x"] <= box["x"]
            assert box["x"] + box["width"] <= whole["x"] + whole["width"] + 0.5
        assert len({link.bounding_box()["y"] for link in walk.numbers.all()}) == 1
        none(views.sideways_faults(walk.page))

    @every_view
    def test_have_no_barrier(self, walk, view):
        walk = walk(view)
        none(views.axe_faults(walk.page))
        walk.numbers.nth(4).click()
        walk.rows.nth(3).click()
        none(views.axe_faults(walk.page))

    def test_follow_the_theme(self, walk):
        pictures = []
        for view in (View(1280, "light", system="dark"), View(1280, "dark", system="light")):
            shown, seen = walk(view), []
            for step in range(1, 8):
                shown.numbers.nth(step - 1).click()
                seen.append((f"step {step}", shown.picture()))
            pictures.append(seen)
        none(views.theme_faults(*pictures))

    def test_fade_only_where_motion_is_welcome(self, walk, browser):
        def duration(page):
            return page.locator(".step.now").evaluate("el => getComputedStyle(el).transitionDuration")

        assert duration(walk(View(1280, "light")).page) == "0s"
        context = browser.new_context(reduced_motion="no-preference", offline=True)
        page = context.new_page()
        page.goto(url())
        assert duration(page) != "0s"
        context.close()


class TestAFollowedWord:
    @every_view
    def test_stays_while_the_others_fade_and_is_let_go_again(self, walk, view):
        walk = walk(view)
        for step, p in [(2, 4), (5, 1), (7, 3)]:
            walk.numbers.nth(step - 1).click()
            walk.page.mouse.move(0, 0)
            before = walk.picture()
            walk.rows.nth(p).click()
            walk.page.mouse.move(0, 0)
            assert walk.followed() == [p]
            changed = rows_changed(walk, before, walk.picture())
            kept, faded = {0, p}, {1, 2, 3, 4} - {p}
            assert max(changed[row] for row in kept) < 0.5, (step, changed)
            assert min(changed[row] for row in faded) > 2, (step, changed)
            walk.rows.nth(p).click()
            walk.page.mouse.move(0, 0)
            walk.page.evaluate("document.activeElement.blur()")
            assert walk.followed() == []
            assert max(rows_changed(walk, before, walk.picture())) < 0.1

    @both_widths
    def test_is_chosen_by_keyboard_and_let_go_by_escape(self, walk, view):
        walk = walk(view)
        press = walk.page.keyboard.press
        walk.numbers.last.focus()
        press("Tab")  # next
        reached = []
        for _ in WORDS:
            press("Tab")
            reached.append(walk.page.evaluate("document.activeElement.ariaLabel"))
            press("Enter")
            assert walk.followed() == [len(reached) - 1]
        assert reached == [f"{word}, position {p}" for p, word in enumerate(WORDS)]
        assert "“the”, position 4." in walk.reading.inner_text()
        outline = walk.rows.nth(4).evaluate("el => getComputedStyle(el).outlineStyle")
        assert outline == "solid"
        press("Escape")
        assert walk.followed() == []
        press("Space")
        press("Space")
        assert walk.followed() == []
        assert walk.reading.inner_text().startswith("Choose a row")

    @both_widths
    def test_is_chosen_by_finger(self, touch, view):
        walk, finger = touch(view)
        finger.tap(walk.rows.nth(3))
        assert walk.followed() == [3]
        finger.tap(walk.rows.nth(1))
        assert walk.followed() == [1]
        finger.tap(walk.rows.nth(1))
        assert walk.followed() == []

    def test_is_followed_from_step_to_step_and_read_out(self, walk):
        walk = walk(View(1280, "light"))
        walk.rows.nth(2).click()
        assert walk.reading.get_attribute("aria-live") == "polite"
        texts = set()
        for _ in range(7):
            assert walk.followed() == [2]
            texts.add(walk.reading.inner_text())
            walk.page.keyboard.press("ArrowRight")
        assert len(texts) == 7
        assert all(text.startswith("“sat”, position 2.") for text in texts)

    def test_is_seen_where_colours_are_forced(self, browser):
        context = browser.new_context(forced_colors="active", reduced_motion="reduce", offline=True)
        page = context.new_page()
        page.goto(url())
        walk = Walk(page)
        before = walk.picture()
        walk.rows.nth(2).click()
        page.mouse.move(0, 0)
        changed = rows_changed(walk, before, walk.picture())
        assert changed[2] < 1
        assert min(changed[row] for row in (1, 3, 4)) > 2
        none(views.axe_faults(page))
        context.close()


def rows_changed(walk, before, after):
    """How much each of the five rows changed, without its edges, where a chosen row has its frame."""
    settings = json.loads(walk.element.get_attribute("data-settings"))
    top, bottom = settings["rows_from"], settings["rows_to"]
    width, height = before.size
    edges = [round((top + p * (bottom - top) / 5) * height) for p in range(6)]
    changed = []
    for start, end in pairwise(edges):
        box = (6, start + 6, width - 6, end - 6)
        difference = ImageChops.difference(before.crop(box), after.crop(box)).convert("L")
        changed.append(ImageStat.Stat(difference).mean[0])
    return changed


class TestWithoutTheScript:
    def seen(self, page):
        return [step.is_visible() for step in page.locator("figure.walkthrough .step").all()]

    @pytest.mark.parametrize("width", [1280, 360])
    def test_all_seven_are_read_under_each_other(self, browser, width):
        context = browser.new_context(java_script_enabled=False, viewport={"width": width, "height": 800})
        page = context.new_page()
        page.goto(url())
        assert self.seen(page) == 7 * [True]
        tops = [step.bounding_box()["y"] for step in page.locator(".step").all()]
        assert all(b > a + 300 for a, b in pairwise(tops))
        assert all(image.bounding_box()["width"] > 250 for image in page.locator(".step img").all())
        context.close()

    def test_all_seven_are_read_where_the_layout_is_unknown(self, browser):
        context = browser.new_context(offline=True)
        context.add_init_script("CSS.supports = () => false")
        page = context.new_page()
        page.goto(url())
        assert self.seen(page) == 7 * [True]
        assert page.locator("walk-through button").count() == 0
        context.close()

    @both_widths
    def test_all_seven_are_printed_and_nothing_to_press(self, walk, view):
        walk = walk(view)
        walk.numbers.nth(4).click()
        walk.rows.nth(3).click()
        walk.page.emulate_media(media="print")
        assert self.seen(walk.page) == 7 * [True]
        tops = [step.bounding_box()["y"] for step in walk.page.locator(".step").all()]
        assert all(b > a + 200 for a, b in pairwise(tops))
        for pressed in (
            walk.previous,
            walk.next,
            walk.numbers.first,
            walk.rows.first,
            walk.reading,
            walk.said,
        ):
            assert not pressed.is_visible()
        walk.page.emulate_media(media="screen")
        assert walk.step() == 5


class TestWhatIsComputedInTheBrowser:
    CLOCKS = "customElements.get('walk-through').clocks"

    def test_is_what_posbook_computes_for_300_random_settings(self, walk):
        page = walk(View(1280, "light")).page
        draw = torch.Generator().manual_seed(0)

        def integer(low, high):
            return int(torch.randint(low, high + 1, (), generator=draw))

        settings = [
            {
                "position": integer(0, 10 ** integer(1, 5)),
                "offset": integer(-1000, 1000),
                "width": 2 * integer(1, 64),
                "base": 10 ** (6 * float(torch.rand((), generator=draw, dtype=torch.float64))),
            }
            for _ in range(300)
        ]
        found = page.evaluate(
            f"""settings => settings.map(({{position: p, offset: k, width, base}}) => {{
              const c = {self.CLOCKS}, theta = c.frequencies(width, base);
              const row = c.encode(p, theta), other = c.encode(p + k, theta);
              return {{theta, row, shifted: c.shift(row, k, theta), dot: c.dot(row, other),
                       apart: c.apart(row, other), degrees: c.degrees(p, theta)}};
            }})""",
            settings,
        )
        for s, got in zip(settings, found, strict=True):
            theta = frequencies.geometric(s["width"], base=s["base"])
            row, other = (
                sinusoidal.encode(frequencies.angles(torch.tensor(at), theta))
                for at in (s["position"], s["position"] + s["offset"])
            )
            near(got["theta"], theta, size=1)
            near(got["row"], row, size=1)
            near(got["shifted"], sinusoidal.shift(theta, s["offset"]) @ row, size=1)
            near(got["dot"], row @ other, size=s["width"] / 2)
            near(got["apart"], (row - other).norm(), size=math.sqrt(2 * s["width"]))
            turned = torch.rad2deg(s["position"] * theta)
            around = (torch.tensor(got["degrees"], dtype=torch.float64) - turned) / 360
            near(around - around.round(), torch.zeros_like(theta), size=max(1.0, float(turned.max()) / 360))

    def test_is_what_stands_beside_the_picture(self, walk):
        walk = walk(View(1280, "light"))
        theta = frequencies.geometric(8, base=100)
        one = torch.tensor([2 * math.pi / 4], dtype=torch.float64)

        def clocks(p, theta=theta):
            return sinusoidal.encode(frequencies.angles(torch.tensor(p), theta))

        def degrees(p, theta=theta):
            return [round(turn) % 360 for turn in torch.rad2deg(p * theta).tolist()]

        said = walk.element.evaluate(
            "el => el.steps.map((_, i) => el.words.map((_, p) =>"
            " el.constructor.reading(i + 1, p, el.settings)))"
        )
        for p, word in enumerate(WORDS):
            row = clocks(p)
            expected = [
                [0 if word == "the" else 4, 0],  # from row 0
                [p, p * math.sqrt(8)],
                [p / 5, p / 5 * math.sqrt(8), 10, p / 10, p / 10 * math.sqrt(8)],
                [*degrees(p, one), *clocks(p, one), (clocks(p, one) - clocks(0, one)).norm(), 0],
                [*degrees(p), (row - clocks(0)).norm(), 0],
                [*degrees(p), 3, *degrees(3)],
                [0, row @ clocks(0), 100, clocks(p + 100) @ clocks(100), p],
            ]
            for step, numbers in enumerate(expected):
                found = re.findall(r"-?\d+(?:\.\d+)?", said[step][p].replace("−", "-"))
                assert [float(x) for x in found] == pytest.approx([float(x) for x in numbers], abs=0.0051)
        walk.rows.nth(3).click()
        walk.numbers.nth(5).click()
        assert walk.reading.inner_text() == f"“on”, position 3. {said[5][3]}"


def near(found, expected, size):
    found = torch.as_tensor(found, dtype=torch.float64)
    assert found.shape == expected.shape
    assert (found - expected).abs().max() <= 1e-6 * size
