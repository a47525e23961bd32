r"""The length explorer computes what posbook does, knows models as their files do, and says it in words."""

import gzip
import json
import math
import re
from contextlib import contextmanager
from importlib import resources

import numpy as np
import pytest
import torch

from posbook import frequencies, scaling
from posbook.practice import config
from tests.book.pages import ROOT, location
from tests.book.test_built import none
from tests.browser import views

pytestmark = pytest.mark.browser
STATIC = ROOT / "docs" / "_static"
SCRIPTS = [STATIC / "moving.js", STATIC / "length-explorer.js"]
PAGE = "length/what-breaks.html"
METHODS = ["none", "linear", "ntk", "dynamic", "yarn", "llama3", "longrope"]
FINGER = 44  # px


# --- what it computes ---------------------------------------------------------------------------------------


def settings(count, seed=0):
    """Settings with their model, or without: some models have the method that is asked for, some another."""
    draw = np.random.default_rng(seed)
    for number in range(count):
        dim, method = 2 * int(draw.integers(2, 129)), METHODS[number % len(METHODS)]
        setting = {
            "base": round(10 ** draw.uniform(0.4, 7)),
            "dim": dim,
            "trained": round(10 ** draw.uniform(1.5, 6)),
            "wanted": round(10 ** draw.uniform(1.5, 7)),
            "method": method,
        }
        if draw.random() < 0.5:
            yield setting, None
            continue
        low, slow = draw.uniform(0.2, 3, size=2)
        model = {
            "method": method if draw.random() < 0.7 else METHODS[(number + 3) % len(METHODS)],
            "factor": float(10 ** draw.uniform(0, 2)),
            "beta_fast": float(slow + draw.uniform(1, 40)),
            "beta_slow": float(slow),
            "truncate": bool(draw.random() < 0.5),
            "low": float(low),
            "high": float(low + draw.uniform(0.5, 8)),
            "short_factor": draw.uniform(0.5, 4, size=dim // 2).tolist(),
            "long_factor": draw.uniform(0.5, 64, size=dim // 2).tolist(),
            "scores": float(draw.uniform(1, 2)),
        }
        yield setting, model


def by_posbook(setting, model):
    """The frequencies after scaling, None where posbook refuses, and what multiplies the scores."""
    theta, method = frequencies.geometric(setting["dim"], setting["base"]), setting["method"]
    trained, wanted = setting["trained"], setting["wanted"]
    said = model if model and model["method"] == method != "none" else {}
    factor = said.get("factor", max(wanted / trained, 1))
    scores = said.get("scores", 1.0)
    if method == "linear":
        theta = scaling.linear(theta, factor)
    elif method == "ntk":
        theta = scaling.ntk(theta, factor)
    elif method == "dynamic":
        theta = scaling.dynamic_ntk(theta, wanted, trained, factor)
    elif method == "llama3":
        theta = scaling.llama3(theta, factor, trained, **{k: said[k] for k in ("low", "high") if k in said})
    elif method == "yarn":
        ends = {k: said[k] for k in ("beta_fast", "beta_slow", "truncate") if k in said}
        try:
            theta = scaling.yarn(theta, factor, trained, **ends)
        except ValueError:  # its ramp would run backwards
            theta = None
        if not said:
            scores = scaling.yarn_temperature(factor) ** 2
    elif method == "longrope":
        factors = said.get("long_factor" if wanted > trained else "short_factor")
        theta = scaling.longrope(theta, factors) if factors else None
    return theta, scores


COMPUTE = """cases => cases.map(([setting, model]) => {
  const theta = LengthExplorer.frequencies(setting.dim, setting.base);
  const recipe = LengthExplorer.recipe(setting, model);
  return {scaled: LengthExplorer.scaled(theta, recipe), fates: LengthExplorer.fates(setting, model)};
})"""


def test_the_explorer_computes_what_posbook_computes(mathematics):
    # Besides random ones, a ramp whose two ends fall on one pair.
    narrow = {"base": 10_000, "dim": 8, "trained": 64, "wanted": 512, "method": "yarn"}
    ends = {"method": "yarn", "factor": 8, "beta_fast": 40, "beta_slow": 12, "truncate": True, "scores": 1}
    cases = [*settings(210), (narrow, ends)]
    refused, kinds = 0, set()
    for (setting, model), found in zip(cases, mathematics.evaluate(COMPUTE, cases), strict=True):
        plain = frequencies.geometric(setting["dim"], setting["base"])
        expected, scores = by_posbook(setting, model)
        fates = found["fates"]
        assert (found["scaled"] is None) == (expected is None) == (not fates["possible"])
        refused += expected is None
        expected = plain if expected is None else expected
        if found["scaled"]:
            assert found["scaled"] == pytest.approx(expected.tolist(), rel=1e-9)
        assert fates["recipe"]["scores"] == pytest.approx(scores, rel=1e-12)
        trained = frequencies.turns(plain, setting["trained"])
        wanted = frequencies.turns(expected, setting["wanted"])
        pairs = fates["pairs"]
        assert [pair["trained"] for pair in pairs] == pytest.approx(trained.tolist(), rel=1e-9)
        assert [pair["wanted"] for pair in pairs] == pytest.approx(wanted.tolist(), rel=1e-9)
        assert [pair["slower"] for pair in pairs] == pytest.approx((plain / expected).tolist(), rel=1e-9)
        round_ = trained >= 1
        beyond = ~round_ & (wanted > trained * (1 + 1e-9))
        named = ["round" if r else "beyond" if b else "inside" for r, b in zip(round_, beyond, strict=True)]
        assert [pair["fate"] for pair in pairs] == named
        kinds |= set(named)
        assert (fates["never"], fates["round"]) == (int((~round_).sum()), int(round_.sum()))
        assert fates["beyond"] == int(beyond.sum())
        if beyond.any():
            wider = torch.where(beyond, wanted / trained, 0)
            assert pairs[fates["widest"]]["wider"] == pytest.approx(wider.max().item(), rel=1e-9)
        assert fates["slower"] == int((round_ & (plain / expected > 1 + 1e-9)).sum())
    assert kinds == {"round", "inside", "beyond"}
    assert 10 < refused < 60


def test_an_address_gives_only_settings_that_are_allowed(mathematics):
    read = "fragment => LengthExplorer.read(fragment)"
    start = mathematics.evaluate("() => LengthExplorer.allowed({})")
    assert mathematics.evaluate(read, "#exercises") is None
    wild = "#explorer&base=-3&dim=77&trained=1e12&wanted=x&method=%3Cb%3E&pair=900&model=gpt-2"
    assert mathematics.evaluate(read, wild) == {
        **start,
        "base": 2,
        "dim": 76,
        "trained": 2**22,
        "pair": 37,
    }
    assert mathematics.evaluate("() => LengthExplorer.write(LengthExplorer.allowed({}))") == ""


@pytest.mark.parametrize(
    "changes, words",
    [
        (
            {},
            [
                "What breaks: the slow pairs. Unscaled, all of the 18 pairs",
                "4,096 tokens",
                "all alike: 8 times",
            ],
        ),
        ({"wanted": 4096}, ["none of the 18 pairs that never came round goes wider"]),
        (
            {"method": "linear"},
            ["none of the 18", "What suffers: the fast pairs. All of the 46", "up to 8 times"],
        ),
        ({"method": "ntk"}, ["With NTK-aware by 8, 17 of the 18 pairs", "pair 46 most: 1.75 times"]),
        ({"method": "dynamic"}, ["With dynamic NTK by 57, none of the 18", "the pairs in between"]),
        ({"method": "yarn"}, ["none of the 18", "the pairs in between", "Scores are multiplied by 1.46"]),
        ({"method": "llama3"}, ["none of the 18", "the pairs in between"]),
        ({"method": "longrope"}, ["factors are searched for", "Unscaled, all of the 18"]),
        ({"base": 700}, ["Every pair came round in training", "Together, even the pairs that came round"]),
        ({"base": 723}, ["Unscaled, the pair that never came round goes wider"]),
        ({"base": 723, "method": "linear"}, ["the pair that never came round goes no wider"]),
        ({"base": 5, "trained": 4_000_000, "wanted": 8_000_000, "method": "yarn"}, ["run backwards"]),
    ],
)
def test_what_breaks_is_said_in_words(changes, words, mathematics):
    said = mathematics.evaluate(
        "changes => { const s = LengthExplorer.allowed(changes);"
        " return LengthExplorer.words(s, LengthExplorer.fates(s)); }",
        changes,
    )
    for part in words:
        assert part in said, said
    assert "undefined" not in said
    assert "NaN" not in said


def test_every_setting_survives_its_address(mathematics):
    draw = np.random.default_rng(3)
    fields = mathematics.evaluate("LengthExplorer.fields")
    for _ in range(100):
        setting = {
            name: str(draw.choice(field["among"]))
            if "among" in field
            else int(draw.integers(field["from"], field["to"], endpoint=True))
            for name, field in fields.items()
        }
        setting = mathematics.evaluate("setting => LengthExplorer.allowed(setting)", setting)
        back = mathematics.evaluate("setting => LengthExplorer.read(LengthExplorer.write(setting))", setting)
        assert back == setting, json.dumps(setting)


# --- the page -----------------------------------------------------------------------------------------------


class Explorer:
    """An explorer on an open page."""

    def __init__(self, page):
        self.page, self.element = page, page.locator("length-explorer")

    def part(self, name):
        return self.element.locator(f'[data-is="{name}"]')

    def control(self, name, kind="number"):
        which = "select" if kind == "select" else f"input[type={kind}]"
        return self.element.locator(f'{which}[name="{name}"]')

    @property
    def setting(self):
        return self.page.evaluate("({...document.querySelector('length-explorer').setting})")

    def has(self, **entries):
        setting = self.setting
        return {name: setting[name] for name in entries} == entries

    def reads(self, name):
        return self.part(name).text_content().strip()


@pytest.fixture
def show(browser):
    """Opens the page with the explorer; more options are those of a browser's context."""

    @contextmanager
    def opened(fragment="", *, width=1280, theme="light", **options):
        wanted = {"color_scheme": theme, "reduced_motion": "reduce", "offline": True, **options}
        context = browser.new_context(viewport={"width": width, "height": 900}, **wanted)
        context.set_default_timeout(10_000)
        context.add_init_script(f"localStorage.setItem('theme', '{theme}')")
        page, faults = context.new_page(), []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto((location() / PAGE).as_uri() + fragment, wait_until="load")
        explorer = Explorer(page)
        if options.get("java_script_enabled", True):
            explorer.element.scroll_into_view_if_needed()
            page.evaluate("document.fonts.ready.then(() => true)")
        try:
            yield explorer
        finally:
            context.close()
        none(faults)

    return opened


PHONE = {"width": 390, "has_touch": True, "is_mobile": True}
needs_the_book = [pytest.mark.book, pytest.mark.usefixtures("built", "browser")]


class TestTheExplorer:
    pytestmark = needs_the_book

    def test_starts_with_llama_2_at_eight_times_its_length(self, show):
        with show() as explorer:
            assert explorer.has(model="llama-2-7b", base=10_000, dim=128, trained=4096, wanted=32_768)
            assert explorer.reads("never-is") == "18 of 64"
            assert explorer.reads("never-says") == "from pair 46"
            assert explorer.reads("beyond-is") == "18 of 18"
            assert explorer.reads("slower-is") == "0 of 46"
            assert "What breaks: the slow pairs" in explorer.reads("says")

    def test_knows_a_dozen_models_as_their_files_do(self, show):
        shipped = resources.files("posbook.practice").joinpath("data/rope_configs.jsonl").read_text("utf-8")
        groups = [
            group
            for line in shipped.splitlines()
            for group in config.read(json.loads(line)["config"]).groups
            if group.scheme == "rotary" and group.rotary_dim % 2 == 0
        ]
        with show() as explorer:
            given = explorer.page.evaluate("LengthExplorer.models")
            assert len(given) == 12
            for slug, model in given.items():
                explorer.control("model", "select").select_option(slug)
                wide = model["longest"] if model["longest"] > model["trained"] else 8 * model["trained"]
                names = ("base", "dim", "trained")
                assert explorer.has(model=slug, wanted=wide, **{name: model[name] for name in names})
                assert explorer.has(method=model.get("method", "none"))
                turns = model["trained"] * frequencies.geometric(model["dim"], model["base"]) / (2 * math.pi)
                assert explorer.has(pair=int((turns >= 1).sum())), "the first pair that never came round"
                # Some file that ships with the package asks for just these frequencies.
                scaled = explorer.page.evaluate(
                    "() => { const it = document.querySelector('length-explorer'); const s = it.setting;"
                    " return LengthExplorer.scaled(LengthExplorer.frequencies(s.dim, s.base),"
                    " LengthExplorer.recipe(s, LengthExplorer.models[s.model])); }"
                )
                alike = [
                    group
                    for group in groups
                    if (group.base, group.rotary_dim, group.trained_length)
                    == (model["base"], model["dim"], model["trained"])
                    and group.frequencies(wide).tolist() == pytest.approx(scaled, rel=1e-9)
                ]
                assert alike, slug

    def test_is_no_model_once_a_value_is_changed(self, show):
        with show() as explorer:
            explorer.control("base").fill("500000")
            assert explorer.has(model="", base=500_000, dim=128, trained=4096)
            assert explorer.reads("never-is") == "32 of 64"
            explorer.control("dim").fill("65")
            assert explorer.has(dim=64)
            assert explorer.control("pair", "range").get_attribute("max") == "31"
            assert explorer.control("pair", "range").input_value() == "31"
            explorer.control("dim").blur()
            assert explorer.control("dim").input_value() == "64"
            explorer.control("trained").fill("")
            assert explorer.has(trained=4096), "an empty field is not a number yet"

    def test_is_used_by_keyboard_alone(self, show):
        with show() as explorer:
            page = explorer.page
            explorer.control("model", "select").focus()
            page.keyboard.type("Llama 3.1")
            assert explorer.has(model="llama-3.1-8b", method="llama3", wanted=131_072)
            assert "With Llama 3 by 8, as its file has it, all of the 29 pairs" in explorer.reads("says")
            assert explorer.part("says").get_attribute("aria-live") == "polite"
            seen = []
            for _ in range(8):
                page.keyboard.press("Tab")
                seen.append(
                    page.evaluate("document.activeElement.name || document.activeElement.dataset.is || ''")
                )
            order = ["base", "dim", "trained", "wanted", "times", "method", "reset"]
            assert [name for name in seen if name in order] == order
            explorer.control("method", "select").focus()
            page.keyboard.type("int")
            assert explorer.has(method="linear")
            explorer.part("times").focus()
            page.keyboard.press("Home")
            assert explorer.has(wanted=8192)
            for _ in range(8):
                page.keyboard.press("ArrowRight")
            assert explorer.has(wanted=16_384)
            assert explorer.part("times").get_attribute("aria-valuetext").startswith("16,384 tokens, 2 times")
            handle = explorer.part("handle")
            handle.focus()
            for key in ("Home", "ArrowRight", "PageUp", "ArrowLeft"):
                page.keyboard.press(key)
            assert explorer.has(pair=10)
            page.keyboard.press("End")
            assert explorer.has(pair=63)
            assert handle.get_attribute("role") == "slider"
            assert handle.get_attribute("aria-valuenow") == handle.get_attribute("aria-valuemax") == "63"
            words = handle.get_attribute("aria-valuetext")
            assert words.startswith("Pair 63: 1.2° in 8,192 tokens, 1.2° in 16,384, slowed 2 times.")
            page.keyboard.press("Tab")
            explorer.part("reset").focus()
            page.keyboard.press("Enter")
            assert explorer.has(model="llama-2-7b", method="none", wanted=32_768, pair=46)

    @pytest.mark.parametrize("options", [{}, PHONE])
    def test_lets_a_pair_be_dragged(self, options, show):
        with show(**options) as explorer:
            box = explorer.part("all").bounding_box()
            unit = box["width"] / 344
            start = explorer.part("knob").locator(".hit").bounding_box()
            x, y = start["x"] + start["width"] / 2, start["y"] + start["height"] / 2
            ends = [(box["x"] + at * unit, y) for at in (150, 44 + 288 * 20 / 63)]
            if options:
                session = explorer.page.context.new_cdp_session(explorer.page)
                for kind, at in (
                    ("touchStart", (x, y)),
                    *(("touchMove", end) for end in ends),
                    ("touchEnd", None),
                ):
                    points = [{"x": at[0], "y": at[1]}] if at else []
                    session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
            else:
                explorer.page.mouse.move(x, y)
                explorer.page.mouse.down()
                for end in ends:
                    explorer.page.mouse.move(*end)
                explorer.page.mouse.up()
            assert explorer.has(pair=20)

    def test_draws_a_mark_for_every_pair_above_or_below_one_turn(self, show):
        with show("#explorer&method=ntk") as explorer:
            drawn = {
                fate: explorer.part(fate).get_attribute("d").count("M")
                for fate in ("round", "inside", "beyond")
            }
            assert drawn == {"round": 46, "inside": 1, "beyond": 17}
            once = float(explorer.part("once").get_attribute("d")[1:].split("H")[0].split()[1])
            for fate in drawn:
                for mark in explorer.part(fate).get_attribute("d").split("M")[1:]:
                    height = float(mark.split("m")[0].split()[1])
                    assert (height <= once + 0.1) == (fate == "round")

    def test_has_a_key_to_its_marks(self, show):
        with show("#explorer&method=ntk") as explorer:
            key = explorer.part("marks")
            assert key.locator("text").all_text_contents() == ["came round", "stays inside", "goes wider"]
            for fate, mark in zip(("round", "inside", "beyond"), key.locator("path").all(), strict=True):
                drawn = explorer.part(fate).get_attribute("d").split("M")[1]
                shown = mark.get_attribute("d")
                one, other = ([float(n) for n in re.findall(r"-?[\d.]+", d)[2:]] for d in (drawn, shown))
                assert one == other

    def test_says_where_no_pair_is_slowed(self, show):
        with show() as explorer:
            assert explorer.reads("slowed") == "no pair is slowed"
            explorer.control("method", "select").select_option("linear")
            assert (explorer.reads("slowed"), explorer.reads("most")) == ("slowed by", "8")
            explorer.control("wanted").fill("4096")
            assert explorer.reads("slowed") == "no pair is slowed"

    def test_draws_what_is_new_of_a_pairs_circle(self, show):
        with show("#explorer&pair=63") as explorer:
            seen, new = (explorer.part(name).get_attribute("d") for name in ("seen", "fresh"))
            for sector, degrees in ((seen, 27.1), (new, 216.8)):
                right, down = map(float, sector.rstrip("Z").split()[-2:])
                assert math.degrees(math.atan2(-down, right)) % 360 == pytest.approx(degrees, abs=0.1)
            explorer.control("method", "select").select_option("linear")
            assert explorer.part("fresh").get_attribute("d") == ""


class TestItsAddress:
    pytestmark = needs_the_book

    def test_carries_the_setting_to_another_reader(self, show):
        with show() as explorer:
            explorer.control("model", "select").select_option("phi-4-mini")
            explorer.control("wanted").fill("65536")
            explorer.page.wait_for_function("location.hash.includes('65536')")
            address, setting = explorer.page.evaluate("location.hash"), explorer.setting
            said = explorer.reads("says")
            assert "With LongRoPE, by the factors of its file, none of the 14" in said
        with show(address) as explorer:
            assert explorer.setting == setting
            assert explorer.reads("says") == said

    def test_is_left_alone_until_the_explorer_is_used(self, show):
        with show("#exercises") as explorer:
            explorer.page.wait_for_timeout(400)
            assert explorer.page.evaluate("location.hash") == "#exercises"


WIDE = "#explorer&base=100000000&dim=512&trained=4194304&wanted=16777216&method=dynamic&pair=255"


class TestItsLook:
    pytestmark = needs_the_book

    @pytest.mark.parametrize("width", [360, 390, 600, 768, 1024, 1280])
    def test_fits_the_screen(self, width, show):
        for fragment in ("", WIDE, "#explorer&model=qwen3-next-80b&base=10000000&dim=64&trained=262144"):
            with show(fragment, width=width) as explorer:
                none(views.sideways_faults(explorer.page))
                none(explorer.element.evaluate(views.OVERFLOWS))

    @pytest.mark.parametrize("width", [360, 390])
    def test_gives_a_finger_44_pixels(self, width, show):
        with show(**{**PHONE, "width": width}) as explorer:
            for control in explorer.element.locator("button, input, select").all():
                box = control.bounding_box()
                assert box["height"] >= FINGER, control.evaluate("el => el.outerHTML")
            hit = explorer.part("knob").locator(".hit").bounding_box()
            assert min(hit["width"], hit["height"]) >= FINGER

    @pytest.mark.parametrize("theme", ["light", "dark"])
    @pytest.mark.parametrize("width", [390, 1280])
    def test_has_no_serious_barrier(self, width, theme, show):
        with show("#explorer&method=ntk", width=width, theme=theme) as explorer:
            none(views.axe_faults(explorer.page))

    def test_can_be_read_in_forced_colours(self, show):
        with show("#explorer&method=ntk", forced_colors="active") as explorer:
            paint = "(el, name) => getComputedStyle(el)[name]"
            ground = explorer.element.locator(".moving").evaluate(paint, "backgroundColor")
            for name in ("round", "inside", "beyond", "once", "bars", "beyond-way"):
                assert explorer.part(name).evaluate(paint, "stroke") != ground, name

    def test_is_the_static_figure_without_javascript(self, show):
        with show(java_script_enabled=False) as explorer:
            still = explorer.element.locator("img")
            assert still.is_visible()
            assert still.bounding_box()["width"] > 300
            assert explorer.element.locator(".moving").count() == 0

    def test_is_the_static_figure_in_print(self, show):
        with show() as explorer:
            still = explorer.element.locator("img")
            assert still.is_hidden()
            explorer.page.emulate_media(media="print")
            assert still.is_visible()
            assert explorer.element.locator(".moving").is_hidden()


def test_it_is_small():
    sizes = {script.name: len(gzip.compress(script.read_bytes())) for script in SCRIPTS}
    assert sum(sizes.values()) <= 12_000, sizes
