"""How the book is built: `sphinx-build -M html docs build -c .`, which is what `make book` runs."""

import os
import sys
from importlib.metadata import version as installed
from pathlib import Path

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

# The one setting for where the source lives, such as "https://example.org/owner/posbook".
# While it is empty, whatever depends on it (source links, canonical addresses) stays out of the book.
REPOSITORY = ""
# Where the built book is published; gives canonical addresses.
ADDRESS = ""

project = "posbook"
author = "the posbook authors"
copyright = "2026, the posbook authors"
release = version = installed("posbook")
language = "en"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "sphinx_proof",
    "sphinxcontrib.bibtex",
    # docs/_ext
    "katex",
    "moving",
    "gallery",
    "computed",
    "claims",
    "boxes",
    "ledger",
    "modules",
    "accessible",
    "promises",
    "speed",
    "merit",
    "walkthrough",
    "zoo",
    "questions",
    "described",
    "ranked",
    "reader",
    "results",
]
# The notebooks that sphinx-gallery writes are for download; myst-nb must not take them for pages.
exclude_patterns = ["_*", "gallery/**/*.ipynb", "gallery/**/*.py", "**/README.md"]
templates_path = ["docs/_templates"]
nitpicky = True
nitpick_ignore_regex = [
    # Types in signatures; no inventory of another project is fetched, so they have no page to link to.
    ("py:class", r"(torch|collections|jaxtyping|lightning_fabric|matplotlib|pathlib)\..*"),
    (
        "py:class",
        r"(Tensor|ndarray|Float|Int|Bool|Shaped|Real|Num|Callable|Sequence|Iterable|Axes|Figure|Module).*"
        r"|(tuple\[|'.*|.*\").*",
    ),
]
suppress_warnings = [
    "config.cache",  # BookOrder is a class; the gallery itself notices changed scripts
    "sphinx_gallery.config",  # no back-references: docs/_ext/modules.py names the scripts by their paths
]

# --- prose ----------------------------------------------------------------------------------------------
myst_enable_extensions = ["amsmath", "attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_update_mathjax = False  # KaTeX needs no settings of MathJax
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
bibtex_bibfiles = ["docs/references.bib"]
bibtex_default_style = "alpha"
bibtex_reference_style = "in_badge"
numfig = True
numfig_secnum_depth = 0
numfig_format = {"figure": "Figure %s", "exercise": "Exercise %s"}
math_numfig = False
math_eqref_format = "({number})"
# One count for all that is proved, so that "Theorem 2" comes before "Corollary 3".
prf_realtyp_to_countertyp = {"corollary": "theorem", "lemma": "theorem", "proposition": "theorem"}
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

# --- reference ------------------------------------------------------------------------------------------
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_typehints = "signature"

# --- gallery --------------------------------------------------------------------------------------------
os.environ["POSBOOK_GALLERY"] = "1"  # posbook.figures.publish leaves the figure to the scraper
gallery_order = [
    "plot_bag_of_words",
    "plot_permutation",
    "plot_last_bit",
    "plot_word_order",
    "plot_prefix_shuffle",
    "plot_symmetry_groups",
    "plot_reversal",
    "plot_sinusoid_walkthrough",
    "plot_sinusoidal_table",
    "plot_wavelengths",
    "plot_shift_is_rotation",
    "plot_gram",
    "plot_learned_table",
    "plot_parity",
    "plot_four_terms",
    "plot_where_position_enters",
    "plot_shaw",
    "plot_t5_buckets",
    "plot_alibi",
    "plot_bias_shapes",
    "plot_rotation",
    "plot_rotary_dial",
    "plot_frequency_decay",
    "plot_layouts",
    "plot_stale_cache",
    "plot_precision",
    "plot_grids",
    "plot_shared_reasons",
    "plot_extrapolation",
    "plot_turns",
    "plot_broken_pairs",
    "plot_frequency_maps",
    "plot_interpolation_bound",
    "plot_ntk_range",
    "plot_yarn_ramps",
    "plot_extension",
    "plot_llama3_bands",
    "plot_longrope_factors",
    "plot_base_bound",
    "plot_measuring",
    "plot_mean_spread",
    "plot_one_over_t",
    "plot_position_probe",
    "plot_a_before_b",
    "plot_choices",
    "plot_mistakes",
    "plot_zoo",
]
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "subsection_order": [
        f"../examples/{part}" for part in ("why", "absolute", "relative", "rotary", "length", "none", "use")
    ],
    "within_subsection_order": "gallery.BookOrder",
    "image_scrapers": ("posbook.figures.scraper.scraper",),
    "abort_on_example_error": True,
    "write_computation_times": False,  # its pages load scripts from the network
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 10**6,
    "download_all_examples": False,
    "remove_config_comments": True,
    "capture_repr": (),
    "thumbnail_size": (400, 280),
}

# --- epub -----------------------------------------------------------------------------------------------
epub_basename = "posbook"
epub_title = "Position in attention"
epub_author = epub_publisher = epub_contributor = author
epub_description = "An executable book on why attention needs positional information."
epub_copyright = f"{copyright}. Text and figures: CC BY 4.0. Code: MIT licence."
# Both are the same, since Sphinx writes the one into the manifest and the other into the contents.
epub_identifier = epub_uid = "posbook-5a0b8c5e-4f0f-4d0e-9a7b-6f3d1c2b7e90"
epub_tocscope = "includehidden"
epub_tocdup = False
epub_cover = ("_static/cover.png", "cover.html")  # docs/_ext/cover.py draws it
epub_css_files = ["reader.css"]
epub_show_urls = "no"  # links are links; a footnote for each would drown the text
epub_tocdepth = 2

# --- html -----------------------------------------------------------------------------------------------
html_theme = "furo"
html_title = "posbook"
html_favicon = "docs/_static/favicon.svg"  # without one, a browser asks the host for it in vain
html_static_path = ["docs/_static"]
html_css_files = ["book.css"]
html_js_files = ["book.js"]
html_math_renderer = "katex"
html_copy_source = False
html_show_sourcelink = False
html_search_scorer = str(ROOT / "docs" / "_ext" / "scorer.js")
html_show_search_summary = False  # summaries are fetched, which a browser refuses on file://
html_baseurl = ADDRESS
html_domain_indices = ["py-modindex"]  # sphinx-proof's lists labels; docs/proved.md lists names
html_theme_options = {
    "top_of_page_buttons": [],
    "light_css_variables": {
        "color-brand-primary": "#1d4f91",
        "color-brand-content": "#1d4f91",
        "color-brand-visited": "#1d4f91",
    },
    "dark_css_variables": {
        "color-brand-primary": "#8ab8f5",
        "color-brand-content": "#8ab8f5",
        "color-brand-visited": "#8ab8f5",
    },
}
if REPOSITORY:
    html_theme_options |= {
        "source_repository": REPOSITORY,
        "source_branch": "main",
        "source_directory": "docs/",
    }
