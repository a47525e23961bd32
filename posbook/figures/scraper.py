r"""What sphinx-gallery calls after each block of a script: save the figure and what the script said of it.

``conf.py`` names it by the string ``"posbook.figures.scraper.scraper"``, which sphinx-gallery imports itself:
a function there could not be pickled with Sphinx's configuration, and every build would be a full one.
"""

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

from posbook.figures import svg
from posbook.figures.publish import SHORTEST_ALT, Published, write_whole


def scraper(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any], **_: Any) -> str:
    r"""Save the open figure as <image path>.svg with images/<script>.json beside it; return the image's rst.

    Raises ValueError, naming the script, for a figure that was not published or has no alt text, and for a
    second one.
    """
    source = Path(block_vars["src_file"])
    try:
        figures = [plt.figure(number) for number in plt.get_fignums()]
        if not figures:
            return ""
        paths = block_vars["image_path_iterator"]
        if len(figures) + len(paths) > 1:
            raise ValueError(f"{source.name}: more than one figure; one script draws one figure")
        said = getattr(figures[0], "published", None)
        if not isinstance(said, Published):
            raise ValueError(
                f"{source.name}: a figure was drawn but not published; "
                "end the block that draws it with posbook.figures.publish(fig, alt=…)"
            )
        if len(said.alt) < SHORTEST_ALT:
            raise ValueError(
                f"{source.name}: the figure has no alt text of at least {SHORTEST_ALT} characters"
            )
        drawing = svg.themed(figures[0], said.alt)
    except ValueError as error:
        # A colour outside the palette is found far from any script: say whose it is.
        raise error if source.name in str(error) else ValueError(f"{source.name}: {error}") from error
    finally:
        plt.close("all")

    image = Path(next(paths)).with_suffix(".svg")
    address = image.resolve().relative_to(Path(gallery_conf["src_dir"]).resolve()).as_posix()
    record = {
        "script": _address(source, gallery_conf),
        "alt": said.alt,
        "numbers": said.numbers,
        "measured": said.measured,
        "images": [address],
    }
    image.parent.mkdir(parents=True, exist_ok=True)
    write_whole(image, drawing)
    write_whole(
        image.with_name(f"{source.stem}.json"), json.dumps(record, ensure_ascii=False, indent=1) + "\n"
    )
    return f"\n.. image:: /{address}\n   :alt: {said.alt}\n   :class: sphx-glr-single-img\n\n"


def _address(source: Path, gallery_conf: dict[str, Any]) -> str:
    """The script as the book names it: its path below the examples' folder, without the suffix."""
    roots = gallery_conf["examples_dirs"]
    for root in [roots] if isinstance(roots, str | Path) else roots:
        folder = (Path(gallery_conf["src_dir"]) / root).resolve()
        if source.resolve().is_relative_to(folder):
            return source.resolve().relative_to(folder).with_suffix("").as_posix()
    raise ValueError(f"{source}: not in any of sphinx-gallery's examples_dirs: {roots}")
