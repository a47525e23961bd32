r"""Mathematics drawn by KaTeX while the book is built: a page needs a stylesheet and fonts, but no script.

A formula becomes HTML for the eye and MathML for the ear; EPUB gets the MathML alone. What KaTeX does not
know, or only warns about, is a Sphinx warning with file, line and formula. One run reports all of them, and
``-W`` fails the build.

Enable it with ``extensions = ["katex"]`` and ``html_math_renderer = "katex"``; the stylesheets
``katex/katex.min.css`` and ``maths.css`` must lie in ``html_static_path``.
"""

import functools
import json
import re
from html import escape
from pathlib import Path
from xml.etree import ElementTree

from docutils import nodes
from sphinx.locale import _
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)

SOURCE = Path(__file__).parent / "vendor" / "katex" / "katex.min.js"

MACROS = {
    r"\softmax": r"\operatorname{softmax}",
    r"\Attn": r"\operatorname{Attn}",
    r"\R": r"\mathbb{R}",
    r"\T": r"^{\mathsf{T}}",
}

# Untrusted commands (\href, \includegraphics) would otherwise be drawn in red and pass for a formula.
# JSON goes both ways because quickjs cannot hand back a string that JavaScript glued together.
DRAW = r"""
function draw(tex, options) {
  options = JSON.parse(options);
  options.trust = context => { throw new katex.ParseError(context.command + " is not allowed"); };
  try { return JSON.stringify({html: katex.renderToString(tex, options)}); }
  catch (error) {
    return JSON.stringify({error: error.rawMessage || String(error), position: error.position ?? null});
  }
}
"""


class FormulaError(ValueError):
    """What KaTeX has against a formula."""


# KaTeX spells \bmod letter by letter inside an operator: MathML does not allow it, and a voice would too.
SPELT = re.compile(r"(<mo\b[^>]*>)<mrow>((?:<mi\b[^>]*>\w</mi>)+)</mrow></mo>")


def joined(match: re.Match) -> str:
    return match[1] + re.sub("<[^>]*>", "", match[2]) + "</mo>"


@functools.cache
def _engine():
    # Imported late: it starts a thread, and Sphinx forks its parallel workers after loading extensions.
    import quickjs

    context = quickjs.Context()
    # A script whose value is a function cannot be handed back either, hence the final 0.
    context.eval(SOURCE.read_text(encoding="utf-8") + ";" + DRAW + ";0")
    return context.get("draw")


@functools.cache
def _draw(tex: str, options: str) -> str:
    answer = json.loads(_engine()(tex, options))
    if "html" in answer:
        return SPELT.sub(joined, answer["html"])
    message = answer["error"].replace("LaTeX-incompatible input and strict mode is set to 'error': ", "")
    if answer["position"] is not None and tex[answer["position"] :]:
        message += f" at '{tex[answer['position'] :][:24]}',"
    raise FormulaError(message)


def render(tex: str, macros: dict[str, str], *, display: bool = False, output: str = "htmlAndMathml") -> str:
    """HTML of one formula; the same formula is drawn once."""
    options = {
        "displayMode": display,
        "output": output,
        "macros": macros,
        "strict": "error",
        "throwOnError": True,
    }
    return _draw(tex, json.dumps(options))


# --- what stands in the source -----------------------------------------------------------------------------


def _has_rows(tex: str) -> bool:
    r"""Whether ``\\`` stands outside every environment and brace, where TeX has no rows to break."""
    depth = 0
    for token in re.findall(r"\\\\|\\[{}]|\\begin\b|\\end\b|[{}]", tex):
        if token == r"\\" and depth == 0:
            return True
        depth += (token in ("{", r"\begin")) - (token in ("}", r"\end"))
    return False


def display_source(node: nodes.math_block) -> str:
    r"""The TeX of a display formula, by Sphinx's rules: a blank line begins an equation, ``\\`` a row."""
    # Sphinx numbers equations; the unstarred environments would number them a second time.
    tex = re.sub(r"\\(begin|end)\{(equation|align|gather|alignat)\}", r"\\\1{\2*}", node.astext())
    if node.get("no-wrap", node.get("nowrap", False)):
        return tex
    parts = [part.strip() for part in re.split(r"\n[ \t]*\n", tex) if part.strip()]
    parts = [rf"\begin{{split}}{part}\end{{split}}" if _has_rows(part) else part for part in parts]
    return parts[0] if len(parts) == 1 else r"\begin{aligned}" + r"\\".join(parts) + r"\end{aligned}"


# Browsers and book readers follow MathML Core, in which a letter has no other style than upright.
VARIANT = re.compile(r'<mi mathvariant="(double-struck|sans-serif)">([A-Z])</mi>')


def upright(match: re.Match) -> str:
    letter = match[2]
    if match[1] == "double-struck":
        struck = letter.translate(DOUBLE_STRUCK)
        letter = struck if struck != letter else chr(ord(letter) - ord("A") + ord("𝔸"))
    return f'<mi mathvariant="normal">{letter}</mi>'


def formula(node: nodes.Element, macros: dict[str, str], output: str = "htmlAndMathml") -> str:
    """HTML of a maths node; a formula that fails is reported once, and shown as its source."""
    display = isinstance(node, nodes.math_block)
    source = node.get("tex", node.astext())
    tex = display_source(node) if display else source
    try:
        drawn = render(tex, macros, display=display, output=output)
        return drawn if output != "mathml" else VARIANT.sub(upright, drawn)
    except FormulaError as error:
        if not node.get("reported"):
            node["reported"] = True
            shown = " ".join(source.split())
            logger.warning("KaTeX: %s in the formula: %s", error, shown, location=node, type="katex")
        return f'<code class="katex-error">{escape(source)}</code>'


def check(app, doctree) -> None:
    # A page that was written once counts as done. So look for wrong formulas while reading, and mark their
    # page to be read, and reported, again by the next build.
    for node in doctree.findall(lambda node: isinstance(node, nodes.math | nodes.math_block)):
        formula(node, app.config.katex_macros)
        if node.get("reported"):
            app.env.note_reread()


# --- headings ----------------------------------------------------------------------------------------------

SUPERSCRIPTS = str.maketrans(
    "0123456789+−()abcdefghijklmnoprstuvwxyzT", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᵀ"
)
SUBSCRIPTS = str.maketrans("0123456789+−()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")
DOUBLE_STRUCK = str.maketrans("CNPQRZ", "ℂℕℙℚℝℤ")
RELATIONS = "=≠<>≤≥≈≡∼∈→⇒"


def plain(tex: str, macros: dict[str, str]) -> str:
    r"""A short formula as text: ``\sqrt{d}`` is √d, ``\theta_i \in \R`` is θᵢ ∈ ℝ."""
    markup = render(tex, macros, output="mathml")
    return " ".join(_text(ElementTree.fromstring(markup)).replace("\u2061", "").split())


def _text(element: ElementTree.Element) -> str:
    parts = [_text(child) for child in element]
    match element.tag.rpartition("}")[2]:
        case "annotation":
            return ""
        case "msup":
            return parts[0] + _script(parts[1], SUPERSCRIPTS, "^")
        case "msub" | "munder":
            return parts[0] + _script(parts[1], SUBSCRIPTS, "_")
        case "msubsup" | "munderover":
            return parts[0] + _script(parts[1], SUBSCRIPTS, "_") + _script(parts[2], SUPERSCRIPTS, "^")
        case "mfrac":
            return f"{_group(parts[0])}/{_group(parts[1])}"
        case "msqrt":
            return "√" + _group("".join(parts))
        case "mi" if element.get("mathvariant") == "double-struck":
            return element.text.translate(DOUBLE_STRUCK)
        case "mo" if element.text and element.text in RELATIONS:
            return f" {element.text} "
    return (element.text or "") + "".join(parts)


def _script(text: str, table: dict[int, int], sign: str) -> str:
    return text.translate(table) if all(ord(letter) in table for letter in text) else sign + _group(text)


def _group(text: str) -> str:
    return text if text.isalnum() or len(text) == 1 else f"({text})"


class PlainTitles(SphinxTransform):
    """Give maths in titles and captions a text for where Sphinx repeats them: links, the search, a tab."""

    default_priority = 840  # before the domains, at 850, take titles for the text of links

    def apply(self, **kwargs) -> None:
        for title in self.document.findall(lambda node: isinstance(node, nodes.title | nodes.caption)):
            for node in title.findall(nodes.math):
                try:
                    text = plain(node.astext(), self.config.katex_macros)
                except FormulaError:
                    continue  # `check` reports it
                node["tex"] = node.astext()
                node[:] = [nodes.Text(text)]


class TitlesForLatex(SphinxPostTransform):
    """LaTeX sets the formula itself."""

    default_priority = 5
    formats = ("latex",)

    def run(self, **kwargs) -> None:
        for node in self.document.findall(nodes.math):
            if "tex" in node:
                node[:] = [nodes.Text(node["tex"])]


def flatten_titles(app, doctree) -> None:
    # Drawn maths in a browser's tab or a tooltip would lose its tags and stand there twice.
    env = app.env
    for titles in (env.titles, env.longtitles, env.tocs):
        for node in list(titles[env.docname].findall(nodes.math)):
            node.parent.replace(node, nodes.Text(node.astext()))


# --- pages -------------------------------------------------------------------------------------------------


def _output(translator) -> str:
    return "mathml" if translator.builder.name == "epub" else "htmlAndMathml"


class KeepTogether(SphinxPostTransform):
    """Tie a formula to the comma behind it and the bracket before it: browsers break the line there."""

    default_priority = 900  # when the text is final
    formats = ("html",)

    def run(self, **kwargs) -> None:
        for node in list(self.document.findall(nodes.math)):
            self._tie(node)

    def _tie(self, node: nodes.math) -> None:
        parent, at = node.parent, node.parent.index(node)
        before, after = (parent[i] if 0 <= i < len(parent) else None for i in (at - 1, at + 1))
        opening = re.search(r"\S*$", before.astext()).group() if isinstance(before, nodes.Text) else ""
        closing = re.match(r"\S*", after.astext()).group() if isinstance(after, nodes.Text) else ""
        if not opening and not closing:
            return
        inner = node.deepcopy()
        inner["tied"] = True
        tied = nodes.inline("", "", nodes.Text(opening), inner, nodes.Text(closing), classes=["tied"])
        parent[at] = tied
        if closing:
            parent[at + 1] = nodes.Text(after.astext()[len(closing) :])
        if opening:
            parent[at - 1] = nodes.Text(before.astext()[: -len(opening)])


def visit_math(self, node: nodes.math) -> None:
    self.body.append(self.starttag(node, "span", "", CLASS="math notranslate nohighlight"))
    drawn = formula(node, self.config.katex_macros, _output(self))
    if node.get("tied"):
        # Where no line breaks, a long formula still has to, between its parts.
        drawn = drawn.replace('</span><span class="katex-base">', '</span><wbr><span class="katex-base">')
    self.body.append(drawn + "</span>")
    raise nodes.SkipNode


def visit_math_block(self, node: nodes.math_block) -> None:
    # furo wraps the block in a container that already carries its identifiers.
    ids = [name for name in node["ids"] if name not in node.parent.get("ids", ())]
    number = str(get_node_equation_number(self, node)) if node.get("number") else ""
    classes = " ".join(["math", "notranslate", "nohighlight", *node["classes"]])
    self.body.append(self.starttag(nodes.Element(), "div", "", CLASS=classes, ids=ids))
    # Always focusable: whether the formula is wider than the screen, only the screen knows.
    name = escape(f"{_('Formula')} {number}".strip())
    self.body.append(f'<div class="formula" tabindex="0" role="group" aria-label="{name}">')
    self.body.append(formula(node, self.config.katex_macros, _output(self)) + "</div>")
    if number and self.config.html_permalinks and self.builder.add_permalinks:
        title = escape(_("Link to this equation"))
        self.body.append(
            f'<a class="equation-number" href="#{node["ids"][0]}" title="{title}">({escape(number)})</a>'
        )
    elif number:
        self.body.append(f'<span class="equation-number">({escape(number)})</span>')
    self.body.append("</div>\n")
    raise nodes.SkipNode


def add_styles(app, pagename, templatename, context, doctree) -> None:
    if app.builder.math_renderer_name != "katex":
        return
    if context.get("has_maths_elements") or app.registry.html_assets_policy == "always":
        if app.builder.name != "epub":
            app.builder.add_css_file("katex/katex.min.css")
        app.builder.add_css_file("maths.css")


def setup(app) -> dict:
    app.add_config_value("katex_macros", MACROS, "env", types=frozenset({dict}))
    app.add_html_math_renderer("katex", (visit_math, None), (visit_math_block, None))
    app.add_transform(PlainTitles)
    app.add_post_transform(TitlesForLatex)
    app.add_post_transform(KeepTogether)
    app.connect("doctree-read", check)
    app.connect("doctree-read", flatten_titles, priority=900)  # after Sphinx has collected the titles
    app.connect("html-page-context", add_styles)
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
