r"""The rotary dial computes what posbook computes, and moves by mouse, touch and keyboard, in every view."""

import gzip
import json
import math
import re
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest
import torch

from posbook import attention, frequencies, rotary
from posbook.figures import style
from tests.book.pages import ROOT, location
from tests.book.test_built import none
from tests.browser import views

pytestmark = pytest.mark.browser
STATIC = ROOT / "docs" / "_static"
SCRIPTS = [STATIC / "moving.js", STATIC / "rotary-dial.js"]
PAGES = ["index.html", "rotary/dial.html"]
CHAPTER = PAGES[1]
START = {"view": "one", "m": 9, "n": 5, "pair": 5, "vectors": "ones", "peak": -24, "seed": 1}
WIDTHS = [360, 390, 600, 768, 1024, 1280]
FINGER = 44  # px


# --- what it computes ---------------------------------------------------------------------------------------


def settings(count, seed=0):
    draw = np.random.default_rng(seed)
    for _ in range(count):
        dim = 2 * int(draw.integers(1, 65))
        q, k = draw.normal(size=(2, dim)) * draw.uniform(0.01, 10, size=(2, 1))
        m, n = draw.integers(0, 10 ** int(draw.integers(1, 6)), size=2, endpoint=True).tolist()
        yield {"dim": dim, "base": float(10 ** draw.uniform(1, 6)), "m": m, "n": n, "q": q, "k": k}


def in_pairs(x):
    return np.asarray(x).reshape(-1, 2).tolist()


def turned(x, at, theta):
    """Each row of the result is x at one position."""
    angles = frequencies.angles(torch.as_tensor(at).reshape(-1), theta)
    x = torch.as_tensor(np.asarray(x), dtype=torch.float64).expand(len(angles), -1)
    return rotary.rotate(x, angles, layout="interleaved")


def apart(found, expected, size):
    """The largest difference, relative to the size of the terms."""
    return float(np.max(np.abs(np.asarray(found, dtype=float) - np.asarray(expected)) / np.asarray(size)))


COMPUTE = """settings => settings.map(({dim, base, m, n, q, k}) => {
  const theta = RotaryDial.frequencies(dim, base);
  const atM = RotaryDial.rotate(q, m, theta), atN = RotaryDial.rotate(k, n, theta);
  return {theta, q: atM.flat(), k: atN.flat(), parts: RotaryDial.parts(atM, atN),
          wedges: atM.map((pair, i) => RotaryDial.wedge(pair, atN[i])),
          score: RotaryDial.score(q, k, m, n, theta)};
})"""


def test_the_dial_computes_what_posbook_computes(mathematics):
    given = list(settings(240))
    asked = [{**one, "q": in_pairs(one["q"]), "k": in_pairs(one["k"])} for one in given]
    for one, found in zip(given, mathematics.evaluate(COMPUTE, asked), strict=True):
        theta = frequencies.geometric(one["dim"], one["base"])
        q, k = turned(one["q"], one["m"], theta), turned(one["k"], one["n"], theta)
        size = np.linalg.norm(one["q"]) * np.linalg.norm(one["k"])
        parts = (q * k)[0].unflatten(-1, (-1, 2)).sum(-1)
        a, b = (torch.view_as_complex(x[0].unflatten(-1, (-1, 2)).contiguous()) for x in (q, k))
        assert apart(found["theta"], theta, theta) < 1e-6
        assert apart(found["q"], q[0], q.norm()) < 1e-6
        assert apart(found["k"], k[0], k.norm()) < 1e-6
        assert apart(found["parts"], parts, size) < 1e-6
        assert apart(found["score"], attention.scores(q, k, scale=1.0).item(), size) < 1e-6
        # Wedges as points on the circle, where −π and π are one.
        wedges = np.exp(1j * np.array(found["wedges"]))
        assert float(np.abs(wedges - (b * a.conj() / (a * b).abs()).numpy()).max()) < 1e-6
        assert np.abs(found["wedges"]).max() <= math.pi


def test_the_curve_is_the_score_at_every_offset(mathematics):
    for half, one in zip([1, 64, 512, 8191, 8191], settings(5, seed=1), strict=True):
        theta = frequencies.geometric(one["dim"], one["base"])
        found = mathematics.evaluate(
            "([q, k, theta, half]) => [...RotaryDial.curve(q, k, theta, half)]",
            [in_pairs(one["q"]), in_pairs(one["k"]), theta.tolist(), half],
        )
        keys = turned(one["k"], torch.arange(-half, half + 1), theta)
        expected = attention.scores(turned(one["q"], 0, theta), keys, scale=1.0)[0]
        size = np.linalg.norm(one["q"]) * np.linalg.norm(one["k"])
        assert len(found) == 2 * half + 1
        assert apart(found, expected, size) < 1e-6


@pytest.mark.parametrize("peak", [-500, -24, 0, 7])
def test_a_key_turned_to_peak_at_an_offset_does(peak, mathematics):
    theta = frequencies.geometric(64)
    q, k = mathematics.evaluate(
        "([peak, theta]) => RotaryDial.vectors({vectors: 'peaked', seed: 3, peak}, theta)",
        [peak, theta.tolist()],
    )
    q, k = np.array(q).ravel(), np.array(k).ravel()
    offsets = torch.arange(-512, 513)
    scores = attention.scores(turned(q, 0, theta), turned(k, offsets, theta), scale=1.0)[0]
    assert int(offsets[scores.argmax()]) == peak
    assert float(scores.max()) == pytest.approx(1, abs=1e-9)  # both have length 1


def test_random_vectors_are_those_of_their_seed_and_normal(mathematics):
    draw = "([seed, count]) => RotaryDial.normals(seed, count)"
    numbers = np.array(mathematics.evaluate(draw, [1, 20_000]))
    assert mathematics.evaluate(draw, [1, 3]) == numbers[:3].tolist()
    assert mathematics.evaluate(draw, [2, 3]) != numbers[:3].tolist()
    # Four standard errors of each moment; the fourth of a normal number is 3.
    assert abs(numbers.mean()) < 4 / math.sqrt(20_000)
    assert abs((numbers**2).mean() - 1) < 4 * math.sqrt(2 / 20_000)
    assert abs((numbers**4).mean() - 3) < 4 * math.sqrt(96 / 20_000)


def was_seen(offset, frequency, length):
    """Whether some distance below the length, not only a whole one, turns the pair as far."""
    distance = (-offset * frequency) % math.tau / frequency
    return distance <= length - 1


def test_a_wedge_is_new_where_no_trained_offset_turned_as_far(mathematics):
    draw = np.random.default_rng(2)
    cases = [
        [-int(draw.integers(0, 20_000)), float(10 ** draw.uniform(-5, 0)), int(draw.integers(2, 5000))]
        for _ in range(400)
    ]
    found = mathematics.evaluate("cases => cases.map(c => RotaryDial.unseen(...c))", cases)
    assert found == [not was_seen(*case) for case in cases]
    assert 40 < sum(found) < 360


def test_an_address_gives_only_settings_that_are_allowed(mathematics):
    read = "fragment => RotaryDial.read(fragment)"
    assert mathematics.evaluate(read, "#what-we-keep") is None
    assert mathematics.evaluate(read, "") is None
    assert mathematics.evaluate(read, "#dial&m=20&n=7&view=all") == {**START, "m": 20, "n": 7, "view": "all"}
    wild = "#dial&m=-3&n=1e9&pair=x&view=%3Cb%3E&vectors=&peak=2.6&seed=&other=1"
    assert mathematics.evaluate(read, wild) == {**START, "m": 0, "n": 8191, "peak": 3}
    assert mathematics.evaluate("() => RotaryDial.write(RotaryDial.allowed({}))") == ""


# --- the page -----------------------------------------------------------------------------------------------


class Dial:
    """A dial on an open page."""

    def __init__(self, page):
        self.page, self.element = page, page.locator("rotary-dial")

    def part(self, name):
        return self.element.locator(f'[data-is="{name}"]')

    @property
    def setting(self):
        return self.page.evaluate("({...document.querySelector('rotary-dial').setting})")

    def has(self, **entries):
        setting = self.setting
        return {name: setting[name] for name in entries} == entries

    def reads(self, name):
        return self.part(name).text_content().strip()

    def press(self, name, *keys):
        self.part(name).focus()
        for key in keys:
            self.page.keyboard.press(key)

    def click(self, name):
        self.element.get_by_role("button", name=name, exact=True).click()

    def set(self, control, value):
        """As a reader does who moves a slider or types a number, and lets go."""
        control.evaluate(
            "(el, value) => { el.value = value;"
            " for (const type of ['input', 'change']) el.dispatchEvent(new Event(type, {bubbles: true})); }",
            str(value),
        )

    def centre(self, name):
        box = self.part(name).locator(".hit").bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def around(self, name, angle, steps=8):
        """Points from a handle around the middle of the dial, anticlockwise by an angle."""
        box = self.part("one").bounding_box()
        unit = box["width"] / 344
        x0, y0 = box["x"] + 172 * unit, box["y"] + 172 * unit
        x, y = self.centre(name)
        radius, start = math.hypot(x - x0, y - y0), math.atan2(y0 - y, x - x0)
        turns = [start + angle * step / steps for step in range(steps + 1)]
        return [(x0 + radius * math.cos(turn), y0 - radius * math.sin(turn)) for turn in turns]

    def drag(self, points):
        mouse = self.page.mouse
        mouse.move(*points[0])
        mouse.down()
        for point in points[1:]:
            mouse.move(*point)
        mouse.up()

    def swipe(self, points):
        """The same by one finger."""
        session = self.page.context.new_cdp_session(self.page)

        def touch(kind, *at):
            touches = [{"x": x, "y": y} for x, y in at]
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})

        touch("touchStart", points[0])
        for point in points[1:]:
            touch("touchMove", point)
        touch("touchEnd")


@pytest.fixture
def show(browser):
    """Opens a page with a dial; more options are those of a browser's context."""

    @contextmanager
    def opened(path=CHAPTER, fragment="", *, width=1280, theme="light", **options):
        wanted = {"color_scheme": theme, "reduced_motion": "reduce", "offline": True, **options}
        context = browser.new_context(viewport={"width": width, "height": 900}, **wanted)
        context.set_default_timeout(10_000)
        context.add_init_script(f"localStorage.setItem('theme', '{theme}')")
        page, faults = context.new_page(), []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto((location() / path).as_uri() + fragment, wait_until="load")
        dial = Dial(page)
        if options.get("java_script_enabled", True):
            dial.element.scroll_into_view_if_needed()
            page.evaluate("document.fonts.ready.then(() => true)")
        try:
            yield dial
        finally:
            context.close()
        none(faults)

    return opened


PHONE = {"width": 390, "has_touch": True, "is_mobile": True}
STEP = 10_000 ** (-5 / 32)  # radians a token of pair 5
needs_the_book = [pytest.mark.book, pytest.mark.usefixtures("built", "browser")]


class TestTheDial:
    pytestmark = needs_the_book

    def test_starts_with_the_wedge_of_four_tokens(self, show):
        with show() as dial:
            assert dial.setting == START
            assert dial.reads("offset-is") == "−4"
            assert dial.reads("wedge-is") == f"−{math.degrees(4 * STEP):.1f}°"
            assert dial.reads("score-is") == f"{math.cos(4 * STEP):.3f}"

    @pytest.mark.parametrize("way, options", [("drag", {}), ("swipe", PHONE)])
    def test_turns_one_hand_by_as_many_tokens_as_it_is_dragged(self, way, options, show):
        with show(**options) as dial:
            getattr(dial, way)(dial.around("query-knob", math.pi / 2))
            assert dial.has(m=9 + round(math.pi / 2 / STEP), n=5)
            getattr(dial, way)(dial.around("key-knob", math.pi))
            assert dial.has(m=16, n=5 + round(math.pi / STEP))
            # Back by more than it has: position 0 is the last that there is.
            getattr(dial, way)(dial.around("query-knob", -5, steps=16))
            assert dial.has(m=0)
            # Let go, it no longer follows.
            for point in dial.around("query-knob", 0.3):
                dial.page.mouse.move(*point)
            assert dial.has(m=0)

    @pytest.mark.parametrize("way, options", [("drag", {}), ("swipe", PHONE)])
    def test_keeps_wedge_and_score_when_both_are_dragged(self, way, options, show):
        with show(**options) as dial:
            before = [dial.reads(name) for name in ("offset-is", "wedge-is", "score-is")]
            hand = dial.part("query-hand").get_attribute("d")
            # More than a whole turn, so that it counts on.
            getattr(dial, way)(dial.around("both-knob", 2 * math.pi + 1, steps=24))
            moved = round((2 * math.pi + 1) / STEP)
            assert dial.has(m=9 + moved, n=5 + moved)
            assert [dial.reads(name) for name in ("offset-is", "wedge-is", "score-is")] == before
            assert dial.part("query-hand").get_attribute("d") != hand
            assert dial.reads("wedge-says") == dial.reads("score-says") == "stands still"
            assert f"Both moved by +{moved}" in dial.reads("says")

    def test_tells_how_far_a_slow_hand_went_since_it_was_taken(self, show):
        with show() as dial:
            for start in (9, 9 + round(1 / STEP)):
                dial.drag(dial.around("query-knob", 1, steps=120))  # many steps within one token
                assert dial.has(m=start + round(1 / STEP), n=5)
                assert f"query moved by +{round(1 / STEP)}," in dial.reads("says")

    def test_says_nothing_of_standing_still_when_the_pair_changes(self, show):
        with show() as dial:
            dial.press("both", "ArrowRight")
            assert "stand still" in dial.reads("says")
            dial.element.locator('input[type=number][name="pair"]').fill("7")
            assert "still" not in dial.reads("says") + dial.reads("wedge-says") + dial.reads("score-says")

    def test_follows_the_keys(self, show):
        with show() as dial:
            dial.press("query", "ArrowRight", "ArrowUp", "Shift+ArrowRight", "ArrowLeft")
            dial.press("query", "PageUp", "PageDown", "PageDown")
            assert dial.has(m=10, n=5)
            dial.press("key", "Home", "ArrowDown")
            assert dial.has(m=10, n=0)
            dial.press("both", "End")
            assert dial.has(m=64, n=54)
            dial.press("both", "PageUp", "Home")
            assert dial.has(m=10, n=0)
            # A key that the browser wants for itself is left to it.
            dial.press("query", "Alt+ArrowRight", "Tab")
            assert dial.has(m=10, n=0)

    def test_tells_its_state_in_words(self, show):
        with show() as dial:
            dial.press("query", "ArrowRight")
            handle = dial.part("query")
            assert handle.get_attribute("role") == "slider"
            assert handle.get_attribute("aria-valuenow") == "10"
            words = handle.get_attribute("aria-valuetext")
            assert words == "query at 10; 5 tokens back; wedge minus 67.9°; score 0.38"
            named = dial.page.get_by_role("slider", name=re.compile("query|key|pair")).all()
            assert len(named) == 3 + 4, "three handles and four sliders"
            for slider in named[:6]:
                assert "score" in slider.get_attribute("aria-valuetext")

    def test_obeys_sliders_and_typed_numbers(self, show):
        with show() as dial:
            sliders, numbers = (
                {n: dial.element.locator(f'input[type={kind}][name="{n}"]') for n in ("m", "n", "pair")}
                for kind in ("range", "number")
            )
            dial.set(sliders["m"], 30)
            assert dial.has(m=30, n=5)
            assert numbers["m"].input_value() == "30"
            assert "query moved by +21" in dial.reads("says")
            numbers["n"].fill("600")
            assert dial.has(m=30, n=600)
            assert sliders["n"].get_attribute("max") == "8191", "the slider reaches as far as the number"
            dial.set(dial.part("together"), 40)
            assert dial.has(m=40, n=610)
            dial.set(sliders["pair"], 0)
            wedge = math.degrees(math.remainder(570, math.tau))
            assert dial.reads("wedge-is") == f"{wedge:.1f}°".replace("-", "−")
            numbers["n"].fill("")
            assert dial.has(n=610), "an empty field is not a number yet"
            numbers["n"].fill("99999")
            assert dial.has(n=8191)
            numbers["n"].blur()
            assert numbers["n"].input_value() == "8191"

    def test_runs_while_it_is_told_to(self, show):
        with show() as dial:
            dial.click("let both move on")
            dial.page.wait_for_function("document.querySelector('rotary-dial').setting.m > 11")
            dial.click("let both move on")
            stopped = dial.setting
            assert stopped["m"] - stopped["n"] == 4
            dial.page.wait_for_timeout(400)
            assert dial.setting == stopped

    def test_has_three_presets_and_a_way_back(self, show):
        with show(fragment="#dial&view=all") as dial:
            dial.click("neighbour")
            assert dial.reads("offset-is") == "−1"
            assert "pair 0 opens by 57.3°" in dial.reads("says")
            dial.click("same word, far away")
            assert dial.reads("offset-is") == "−1,000"
            dial.click("past the trained length")
            theta = 10_000 ** (-torch.arange(32, dtype=torch.float64) / 32)
            new = [not was_seen(-5000, float(speed), 4096) for speed in theta]
            assert dial.reads("wedge-is") == f"{sum(new)} of 32"
            ringed = dial.page.locator("[data-pair]").evaluate_all(
                "all => all.map(el => el.classList.contains('new'))"
            )
            assert ringed == new
            assert dial.part("says").get_attribute("aria-live") == "polite"
            dial.click("reset")
            assert dial.setting == START

    def test_draws_every_pair_and_its_part(self, show):
        with show(fragment="#dial&view=all&vectors=random&seed=4&m=40&n=33") as dial:
            q, k, drawn = dial.page.evaluate(
                "() => { const it = document.querySelector('rotary-dial'); return [it.q, it.k, "
                "it.dials.map(dial => [...dial.querySelectorAll('.query, .key, .bar')].map("
                "el => el.getAttribute('d')))]; }"
            )
            theta = frequencies.geometric(64)
            q, k = (
                turned(np.array(x).ravel(), at, theta)[0].unflatten(-1, (-1, 2))
                for x, at in ((q, 40), (k, 33))
            )
            largest = (q.norm(dim=-1) * k.norm(dim=-1)).max()
            for i, (key, query, bar) in enumerate(drawn):
                for hand, x in ((key, k[i]), (query, q[i])):
                    right, up = (float(s) for s in re.fullmatch(r"M0 0L(\S+) (\S+)", hand).groups())
                    assert math.hypot(right, up) > 9
                    assert math.atan2(-up, right) == pytest.approx(math.atan2(x[1], x[0]), abs=0.02)
                length = float(bar.rpartition("H")[2])
                assert length == pytest.approx(float(16 * (q[i] * k[i]).sum() / largest), abs=0.06)
            score = float((q * k).sum())
            assert dial.reads("score-is") == f"{score:.3f}".replace("-", "−")

    @pytest.mark.parametrize("way, options", [("drag", {}), ("swipe", PHONE)])
    def test_lets_the_offset_be_dragged_along_the_curve(self, way, options, show):
        with show(fragment="#dial&view=all", **options) as dial:
            box = dial.part("all").bounding_box()
            unit, (x, y) = box["width"] / 344, dial.centre("offset-knob")
            getattr(dial, way)([(x, y), (x - 50 * unit, y), (box["x"] + 24 * unit, y)])
            assert dial.has(m=64, n=0)
            # Beside the dot too, where the pointer comes down.
            x, y = box["x"] + 300 * unit, box["y"] + 330 * unit
            getattr(dial, way)([(x, y), (x - 20 * unit, y), (x - 42 * unit, y)])
            assert dial.has(m=64, n=64 + round(64 * (258 - 180) / 156))
            dial.set(dial.element.locator('input[type=number][name="n"]'), 0)
            dial.press("offset", "ArrowRight", "PageUp")
            assert dial.has(m=64, n=11)
            dial.press("offset", "End")
            assert dial.setting["n"] - dial.setting["m"] == 64

    def test_draws_the_highest_point_where_the_key_is_turned_to_peak(self, show):
        with show(fragment="#dial&view=all&vectors=peaked") as dial:
            peak = dial.page.get_by_label("offset of the peak")
            dial.set(peak, 30)
            points = re.findall(r"[ML](\S+) (\S+?)(?=[ML]|$)", dial.part("curve").get_attribute("d"))
            heights = [float(y) for _, y in points]
            assert len(points) == 129
            assert heights.index(min(heights)) == 64 + 30
            before = dial.part("curve").get_attribute("d")
            dial.click("another")
            assert dial.has(seed=2)
            assert dial.part("curve").get_attribute("d") != before

    def test_makes_a_small_dial_the_large_one(self, show):
        with show(fragment="#dial&view=all") as dial:
            dial.page.locator('[data-pair="12"]').click()
            dial.click("One pair")
            assert dial.has(pair=12, view="one")
            assert dial.part("one").is_visible()
            assert dial.part("all").is_hidden()


class TestItsAddress:
    pytestmark = needs_the_book

    @pytest.mark.parametrize("path", PAGES)
    def test_carries_the_setting_to_another_reader(self, path, show):
        with show(path) as dial:
            dial.click("All pairs")
            dial.press("offset", "ArrowLeft")
            dial.page.locator("label", has_text="random").click()
            dial.page.wait_for_function("location.hash.includes('random')")
            address, setting = dial.page.evaluate("location.hash"), dial.setting
            seen = dial.element.locator(".tiles").inner_text()
        with show(path, address) as dial:
            assert dial.setting == setting == {**START, "view": "all", "n": 4, "vectors": "random"}
            assert dial.element.locator(".tiles").inner_text() == seen

    def test_is_followed_when_it_changes(self, show):
        with show() as dial:
            dial.page.evaluate("location.hash = '#dial&m=30&n=20'")
            dial.page.wait_for_function("document.querySelector('rotary-dial').setting.m === 30")
            assert dial.reads("offset-is") == "−10"

    def test_is_left_alone_until_the_dial_is_moved(self, show):
        with show(fragment="#exercises") as dial:
            dial.page.wait_for_timeout(400)
            assert dial.page.evaluate("location.hash") == "#exercises"
            assert dial.setting == START
            dial.press("query", "ArrowRight")
            dial.page.wait_for_function("location.hash === '#dial&m=10'")
            dial.click("reset")
            dial.page.wait_for_function("location.hash === ''")


AT = "([x, y]) => document.elementFromPoint(x, y).closest('[role=slider]')?.dataset.is"


class TestItsLook:
    pytestmark = needs_the_book

    @pytest.mark.parametrize("width", WIDTHS)
    @pytest.mark.parametrize("path", PAGES)
    def test_fits_the_screen(self, path, width, show):
        for fragment in (
            "#dial",
            "#dial&view=all&vectors=peaked&m=8191&n=0&peak=-512&seed=9999",
            "#dial&m=8191&n=0",
        ):
            with show(path, fragment, width=width) as dial:
                none(views.sideways_faults(dial.page))
                none(dial.element.evaluate(views.OVERFLOWS))

    @pytest.mark.parametrize("width", [360, 390])
    @pytest.mark.parametrize("view, handles", [("one", ["query", "key", "both"]), ("all", ["offset"])])
    def test_gives_a_finger_44_pixels(self, view, handles, width, show):
        phone = {**PHONE, "width": width}
        # The hands lie on each other, and yet each handle has its place along them.
        with show(fragment=f"#dial&view={view}&vectors=peaked&peak=0&m=5&n=5", **phone) as dial:
            for name in handles:
                box = dial.part(f"{name}-knob").locator(".hit").bounding_box()
                assert min(box["width"], box["height"]) >= FINGER, name
                assert dial.page.evaluate(AT, dial.centre(f"{name}-knob")) == name
            places = sorted(dial.centre(f"{name}-knob") for name in handles)
            assert all(math.dist(a, b) >= FINGER - 1 for a, b in pairwise(places))
            for control in dial.element.locator("button, input:not([type=radio]), label.choice").all():
                box = control.bounding_box()
                assert box is None or box["height"] >= FINGER, control.evaluate("el => el.outerHTML")

    @pytest.mark.parametrize("view", ["one", "all"])
    def test_leaves_the_page_to_scroll_under_a_finger(self, view, show):
        with show(fragment=f"#dial&view={view}", **PHONE) as dial:
            box = dial.part(view).bounding_box()
            # On the face, off the hands; on the curve, off the dot.
            x, y = box["x"] + box["width"] * 0.75, box["y"] + box["width"] * 0.8
            dial.swipe([(x, y), (x - 30, y), (x - 60, y)])
            setting, before = dial.setting, dial.page.evaluate("scrollY")
            assert (setting["n"] == START["n"]) == (view == "one"), "across the curve is no scrolling"
            dial.swipe([(x, y), (x, y - 60), (x, y - 150)])
            dial.page.wait_for_timeout(200)
            assert dial.page.evaluate("scrollY") > before
            assert dial.setting == setting

    @pytest.mark.parametrize("theme", ["light", "dark"])
    @pytest.mark.parametrize("view", ["one", "all"])
    @pytest.mark.parametrize("width", [390, 1280])
    def test_has_no_serious_barrier(self, width, view, theme, show):
        with show(fragment=f"#dial&view={view}&vectors=peaked", width=width, theme=theme) as dial:
            none(views.axe_faults(dial.page))

    @pytest.mark.parametrize("theme, index", [("light", 0), ("dark", 1)])
    def test_has_the_colours_of_the_figures(self, theme, index, show):
        other = {"light": "dark", "dark": "light"}[theme]
        with show(theme=theme, color_scheme=other) as dial:
            for name, role in (("query-hand", "query"), ("key-hand", "key"), ("arc", "position")):
                found = dial.part(name).evaluate("el => getComputedStyle(el).stroke")
                assert found == rgb(style.ROLES[role][index]), role
            switch = dial.page.locator("button.theme-toggle:visible").first
            for _ in range(3):
                switch.click()
                if dial.page.evaluate("document.body.dataset.theme") == other:
                    break
            found = dial.part("query-hand").evaluate("el => getComputedStyle(el).stroke")
            assert found == rgb(style.ROLES["query"][1 - index])

    def test_can_be_read_in_forced_colours(self, show):
        with show(forced_colors="active") as dial:
            paint = "(el, name) => getComputedStyle(el)[name]"
            ground = dial.element.locator(".moving").evaluate(paint, "backgroundColor")
            for name in ("query-hand", "key-hand", "arc", "ticks", "gauge"):
                assert dial.part(name).evaluate(paint, "stroke") != ground, name
            hands = [dial.part(f"{name}-hand").evaluate(paint, "stroke") for name in ("query", "key")]
            assert hands[0] != hands[1]
            for letter in dial.element.locator(".letter").all():
                knob = letter.locator("xpath=preceding-sibling::*[1]").evaluate(paint, "fill")
                assert letter.evaluate(paint, "fill") != knob

    @pytest.mark.parametrize("path", PAGES)
    def test_is_the_static_figure_without_javascript(self, path, show):
        with show(path, java_script_enabled=False) as dial:
            still = dial.element.locator("img")
            assert still.is_visible()
            assert still.bounding_box()["width"] > 300
            assert len(still.get_attribute("alt")) > 60
            assert dial.element.locator(".moving").count() == 0

    @pytest.mark.parametrize("path", PAGES)
    def test_is_the_static_figure_in_print(self, path, show):
        with show(path) as dial:
            still = dial.element.locator("img")
            assert still.is_hidden()
            dial.page.emulate_media(media="print")
            assert still.is_visible()
            assert dial.element.locator(".moving").is_hidden()

    def test_moves_its_hands_smoothly_unless_the_reader_wants_no_motion(self, show):
        watch = """async () => {
          const dial = document.querySelector('rotary-dial'), seen = new Set();
          dial.change({m: 14});
          for (let i = 0; i < 40; i++) {
            seen.add(dial.part('query-hand').getAttribute('d'));
            await new Promise(requestAnimationFrame);
          }
          return [...seen];
        }"""
        with show() as dial:
            jump = dial.page.evaluate(watch)
        with show(reduced_motion="no-preference") as dial:
            path = dial.page.evaluate(watch)
        assert len(jump) == 1
        assert len(path) > 5
        assert path[-1] == jump[0]


def rgb(colour):
    return "rgb({}, {}, {})".format(*(int(colour[i : i + 2], 16) for i in (1, 3, 5)))


SLIDE = """([view, rounds]) => {
  const dial = document.querySelector('rotary-dial');
  dial.change({view, vectors: 'random', m: 0, n: 0});
  const slider = dial.querySelector('input[type=range][name=m]');
  for (let i = 0; i < rounds; i++) {
    slider.value = i % 60;
    slider.dispatchEvent(new Event('input', {bubbles: true}));
    dial.getBoundingClientRect();  // lays the page out, as the next frame would
  }
}"""


class TestItsWeight:
    def test_is_small(self):
        sizes = {script.name: len(gzip.compress(script.read_bytes())) for script in SCRIPTS}
        assert sum(sizes.values()) <= 12_000, sizes

    @pytest.mark.book
    @pytest.mark.usefixtures("built")
    def test_is_loaded_only_where_there_is_a_dial(self):
        for path in (*PAGES, "notation.html"):
            text = (location() / path).read_text(encoding="utf-8")
            assert ("rotary-dial.js" in text) == ("moving.css" in text) == (path in PAGES), path

    @pytest.mark.book
    @pytest.mark.usefixtures("built", "browser")
    @pytest.mark.parametrize("view", ["one", "all"])
    def test_answers_a_slider_within_a_frame(self, view, show):
        with show() as dial:
            # The thread's own time: on a busy machine the clock on the wall measures the others.
            session = dial.page.context.new_cdp_session(dial.page)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})

            def spent():
                metrics = session.send("Performance.getMetrics")["metrics"]
                return next(one["value"] for one in metrics if one["name"] == "TaskDuration")

            before = spent()
            dial.page.evaluate(SLIDE, [view, 200])
            each = 1000 * (spent() - before) / 200
        print(f"{view}: {each:.1f} ms a step, layout included")
        assert each < 16

    def test_has_the_palette_of_the_figures(self):
        css = (STATIC / "book.css").read_text(encoding="utf-8")
        blocks = re.findall(r"\{([^{}]*--role-[^{}]*)\}", css)
        shades = ["light", "dark", "dark"]  # by the theme's switch, and by the system
        assert len(blocks) == len(shades)
        for block, shade in zip(blocks, shades, strict=True):
            found = dict(re.findall(r"--role-([\w-]+): (#\w+);", block))
            assert found == {role: getattr(style.ROLES[role], shade) for role in found}
            used = set(
                re.findall(r"var\(--role-([\w-]+)\)", (STATIC / "moving.css").read_text(encoding="utf-8"))
            )
            assert used <= found.keys()


def test_every_setting_survives_its_address(mathematics):
    draw = np.random.default_rng(3)
    fields = mathematics.evaluate("RotaryDial.fields")
    for _ in range(100):
        setting = {
            name: str(draw.choice(field["among"]))
            if "among" in field
            else int(draw.integers(field["from"], field["to"], endpoint=True))
            for name, field in fields.items()
        }
        back = mathematics.evaluate("setting => RotaryDial.read(RotaryDial.write(setting))", setting)
        assert back == setting, json.dumps(setting)
