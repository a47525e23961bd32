r"""Pages of the book in a browser: how they are opened, and what can be asked of an open page.

Each question returns faults, as the checks in tests/book do.
"""

import io
import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from PIL import Image, ImageChops, ImageStat

AXE = (Path(__file__).parent / "axe.min.js").read_text(encoding="utf-8")
HOW_TO_GET_ONE = (
    "no browser: apt-get install chromium, or name one in CHROMIUM "
    "(python -m playwright install chromium fetches one)"
)
# What sticks out of a figure that moves, or is wider than its place in it.
OVERFLOWS = """el => {
  const card = el.querySelector('.moving').getBoundingClientRect(), faults = [];
  for (const part of el.querySelectorAll('button, input, select, output, label, p, span, b, small, svg')) {
    const box = part.getBoundingClientRect();
    if (!box.width || !part.closest('.moving')) continue;
    const name = `${part.tagName} ${part.textContent.trim().slice(0, 30)}`;
    if (box.left < card.left - 1 || box.right > card.right + 1) faults.push(`${name} sticks out`);
    if (part.scrollWidth > part.clientWidth + 1 && getComputedStyle(part).display !== 'inline' &&
        !['INPUT', 'SELECT', 'svg'].includes(part.tagName)) faults.push(`${name} is wider than its place`);
  }
  return faults;
}"""
HEIGHTS = {1280: 900, 390: 844, 360: 740}


def chromium():
    """The path of the browser, or None."""
    named = os.environ.get("CHROMIUM")
    found = [named] if named else ["chromium", "chromium-browser", "google-chrome"]
    return next((path for path in map(shutil.which, found) if path), None)


@dataclass(frozen=True)
class View:
    """A screen: its width, the theme that the reader switched to (or "auto"), and what the system prefers."""

    width: int
    theme: str
    system: str = ""

    def __str__(self):
        return f"{self.width}-{self.theme}"


DESK, DESK_DARK = View(1280, "light"), View(1280, "dark")
PHONE, PHONE_DARK = View(390, "light"), View(390, "dark")
VIEWS = [DESK, DESK_DARK, PHONE, PHONE_DARK]


def launch(playwright):
    return playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])


def new_context(browser, view):
    context = browser.new_context(
        viewport={"width": view.width, "height": HEIGHTS[view.width]},
        color_scheme=view.system or view.theme,
        reduced_motion="reduce",
        offline=True,
    )
    context.set_default_timeout(20_000)
    context.add_init_script(f"localStorage.setItem('theme', '{view.theme}')")
    return context


class Contexts:
    """One page for each view, kept for the next visit: to make a new one costs as much as a visit."""

    def __init__(self, browser):
        self.browser, self.contexts, self.pages = browser, {}, {}

    @contextmanager
    def open(self, url, view, listen=None):
        """The page at `url`, drawn and with its fonts; `listen(page)` is called before it loads."""
        if view not in self.contexts:
            self.contexts[view] = new_context(self.browser, view)
        # Who listens gets a page on which nobody has listened before.
        page = None if listen else self.pages.get(view)
        page = page or self.contexts[view].new_page()
        page.set_viewport_size({"width": view.width, "height": HEIGHTS[view.width]})
        try:
            if listen:
                listen(page)
            page.goto(url, wait_until="load")
            page.evaluate("document.fonts.ready.then(() => true)")
            yield page
        finally:
            if listen:
                page.close()
            else:
                self.pages[view] = page

    def close(self):
        for context in self.contexts.values():
            context.close()


class Traffic:
    """What a page asks for and complains about while it is open."""

    def __init__(self):
        self.urls, self.complaints = [], []

    def listen(self, page):
        page.on("request", lambda request: self.urls.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(f"page error: {error}"))
        page.on("console", self.hear)

    def hear(self, message):
        if message.type == "error":
            self.complaints.append(f"console error: {message.text} {message.location.get('url', '')}")

    def faults(self):
        away = [url for url in self.urls if urlsplit(url).scheme not in {"file", "data", "blob"}]
        return [f"asks the network for {url}" for url in away] + self.complaints

    def weight(self, suffixes):
        """Bytes of the files of these kinds, each counted once."""
        files = {Path(unquote(urlsplit(url).path)) for url in self.urls if url.startswith("file:")}
        return sum(file.stat().st_size for file in files if file.suffix in suffixes and file.is_file())


def axe_faults(page):
    """What axe calls serious or critical."""
    page.evaluate(AXE)
    # Preloading fetches the stylesheets again, which file:// refuses with a console error.
    found = page.evaluate(
        "() => axe.run(document, {resultTypes: ['violations'], preload: false}).then(r => r.violations"
        ".filter(v => ['serious', 'critical'].includes(v.impact))"
        ".map(v => ({id: v.id, impact: v.impact, help: v.help, count: v.nodes.length,"
        " html: v.nodes[0].html.slice(0, 200), why: v.nodes[0].failureSummary})))"
    )
    return [
        f"{v['id']} ({v['impact']}, {v['count']} times): {v['help']}: {v['html']}\n    "
        + " ".join(v["why"].split())
        for v in found
    ]


SIDEWAYS = r"""() => {
  const room = window.innerWidth, faults = [];
  const text = document.querySelector('article') || document.querySelector('main');
  const name = el => `<${el.tagName.toLowerCase()} class="${el.getAttribute('class') || ''}"> ` +
    JSON.stringify(el.textContent.trim().replace(/\s+/g, ' ').slice(0, 40));
  const wide = document.scrollingElement.scrollWidth;
  if (wide > room) faults.push(`the page scrolls sideways: ${wide} px on a screen of ${room} px`);
  // A box around the whole text that scrolls, as furo's does, is the page by another name.
  for (let box = text?.parentElement; box && box !== document.documentElement; box = box.parentElement)
    if (getComputedStyle(box).overflowX !== 'visible' && box.scrollWidth > box.clientWidth + 1)
      faults.push(`the page scrolls sideways: ${box.scrollWidth} px in a box of ${box.clientWidth} px`);
  for (const el of text?.querySelectorAll('pre, table, img, svg, .katex-base') ?? []) {
    let right = el.getBoundingClientRect().right;
    if (el.tagName === 'PRE') right = Math.max(right, el.getBoundingClientRect().left + el.scrollWidth);
    // The first box around it that scrolls holds it; one that hides what sticks out cuts it off.
    for (let box = el; box !== text && right; box = box.parentElement) {
      const scrolls = getComputedStyle(box).overflowX, edge = box.getBoundingClientRect().right;
      if (['auto', 'scroll'].includes(scrolls)) {
        if (edge > room + 1) faults.push(`${name(el)} scrolls in a box that sticks out of the screen`);
        right = 0;
      } else if (['hidden', 'clip'].includes(scrolls) && right > edge + 1) {
        faults.push(`${name(el)} is cut off by ${name(box)}`);
        right = 0;
      }
    }
    if (right > room + 1) faults.push(`${name(el)} sticks out of the screen`);
  }
  return faults;
}"""


def sideways_faults(page):
    """Nothing moves the page sideways, and what is wider than the screen scrolls in a box of its own."""
    return page.evaluate(SIDEWAYS)


STRAY_MARKS = r"""() => {
  const faults = [];
  for (const math of document.querySelectorAll('span.math')) {
    const mark = math.nextSibling, bases = math.querySelectorAll('.katex-base');
    if (mark?.nodeType !== Node.TEXT_NODE || !/^[.,;:?!)]/.test(mark.data) || !bases.length) continue;
    const range = document.createRange();
    range.setStart(mark, 0);
    range.setEnd(mark, 1);
    const below = range.getBoundingClientRect(), last = bases[bases.length - 1].getBoundingClientRect();
    if (last.width && below.top >= last.bottom - 2)
      faults.push(`a line begins with "${mark.data.slice(0, 12)}" after ${math.textContent.slice(0, 40)}`);
  }
  return faults;
}"""


def stray_marks(page):
    """No line begins with the comma that belongs to the formula before it."""
    return page.evaluate(STRAY_MARKS)


COVERED_NUMBERS = r"""() => {
  const faults = [];
  for (const number of document.querySelectorAll('.equation-number, .eqno')) {
    const block = number.closest('.math'), n = number.getBoundingClientRect();
    const bases = block ? block.querySelectorAll('.katex-html :is(.katex-base, .katex-tag)') : [];
    if (!bases.length) faults.push(`the number ${number.textContent.trim()} has no formula drawn by KaTeX`);
    for (const base of bases) {
      let b = base.getBoundingClientRect(), left = b.left, right = b.right;
      // Of a formula in a box that scrolls, only what the box shows can cover anything.
      for (let box = base.parentElement; box !== block; box = box.parentElement)
        if (getComputedStyle(box).overflowX !== 'visible') {
          const edge = box.getBoundingClientRect();
          left = Math.max(left, edge.left); right = Math.min(right, edge.right);
        }
      const across = Math.min(right, n.right) - Math.max(left, n.left);
      const down = Math.min(b.bottom, n.bottom) - Math.max(b.top, n.top);
      if (across > 1 && down > 1) {
        faults.push(`the number ${number.textContent.trim()} lies on its formula (${Math.round(across)} px)`);
        break;
      }
    }
    if (n.width && (n.right > innerWidth + 1 || n.left < 0))
      faults.push(`the number ${number.textContent.trim()} is off the screen`);
  }
  return faults;
}"""


def covered_numbers(page):
    """The number of a display formula stands beside it or below it, never on it."""
    return page.evaluate(COVERED_NUMBERS)


def fold_faults(page):
    """Each folded solution opens by Enter and closes by it."""
    faults = []
    for fold in page.locator("details.solution, .solution details, details:has(.solution)").all():
        summary = fold.locator("summary").first
        name = " ".join(summary.inner_text().split())
        content = fold.locator(":scope > :not(summary)").first
        if content.is_visible():
            faults.append(f"{name!r} is open before the reader has tried")
            continue
        summary.focus()
        if not summary.evaluate("el => el === document.activeElement"):
            faults.append(f"{name!r} cannot be reached by keyboard")
            continue
        page.keyboard.press("Enter")
        if not content.is_visible():
            faults.append(f"{name!r} does not open by Enter")
        page.keyboard.press("Enter")
        if content.is_visible():
            faults.append(f"{name!r} does not close by Enter")
    return faults


def pictures(page):
    """The SVG pictures that the page's text shows, each as (file name, what is seen)."""
    seen = []
    for image in page.locator("[role=main] figure img[src*='.svg']:visible").all():
        image.scroll_into_view_if_needed()
        image.evaluate("el => el.decode().catch(() => null)")
        shot = Image.open(io.BytesIO(image.screenshot())).convert("RGB")
        seen.append((image.get_attribute("src").rpartition("/")[2], shot))
    return seen


# Of 255. Paper is light and night is dark, and the two may not look alike.
DARK, APART, CHANGED = 110, 60, 40


def theme_faults(light, dark):
    """The same pictures under the theme's light and under its dark."""
    faults = []
    for (name, day), (_, night) in zip(light, dark, strict=True):
        brightness = [ImageStat.Stat(shot.convert("L")).mean[0] for shot in (day, night)]
        night = night.resize(day.size)
        change = ImageStat.Stat(ImageChops.difference(day, night).convert("L")).mean[0]
        if brightness[1] > DARK:
            faults.append(f"{name} is not dark in the dark: {brightness[1]:.0f} of 255, at most {DARK}")
        if brightness[0] - brightness[1] < APART or change < CHANGED:
            day, night = brightness
            faults.append(
                f"{name} does not follow the theme: {day:.0f} in the light, {night:.0f} in the dark"
            )
    return faults
