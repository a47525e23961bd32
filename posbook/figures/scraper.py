r"""What sphinx-gallery calls after each block of a script: save the figure and what the script said of it.

``conf.py`` names it by the string ``"posbook.figures.scraper.scraper"``, which sphinx-gallery imports itself:
a function there could not be pickled with Sphinx's configuration, and every build would be a full one.
"""

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

from posbook.figures import png, svg
from posbook.figures.publish import SHORTEST_ALT, Published, write_whole


def scraper(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any], **_: Any) -> str:
    r"""Save the open figure as <image path>.svg with images/<script>.json beside it; return the image's rst.

    The same as a PNG goes into images/png/: beside the SVG, sphinx-gallery would take it for the thumbnail.
    The steps of one figure are saved in order, under the image paths that follow one another.
    Raises ValueError, naming the script, for a figure that was not published or has no alt text, and for a
    second one.
    """
    source = Path(block_vars["src_file"])
    try:
        figures = [plt.figure(number) for number in plt.get_fignums()]
        if not figures:
            return ""
        paths = block_vars["image_path_iterator"]
        said = [getattr(figure, "published", None) for figure in figures]
        if not all(isinstance(each, Published) for each in said):
            raise ValueError(
                f"{source.name}: a figure was drawn but not published; "
                "end the block that draws it with posbook.figures.publish(fig, alt=…)"
            )
        if len(paths) or sorted((each.step, each.steps) for each in said) != [
            (step, len(figures)) for step in range(1, len(figures) + 1)
        ]:
            raise ValueError(
                f"{source.name}: more than one figure; one script draws one figure, if in several steps"
            )
        if any(len(each.alt) < SHORTEST_ALT for each in said):
            raise ValueError(
                f"{source.name}: the figure has no alt text of at least {SHORTEST_ALT} characters"
            )
        figures.sort(key=lambda figure: figure.published.step)
        drawings = [svg.themed(figure, figure.published.alt) for figure in figures]
        pictures = [png.picture(figure, figure.published.alt) for figure in figures]
    except ValueError as error:
        # A colour outside the palette is found far from any script: say whose it is.
        raise error if source.name in str(error) else ValueError(f"{source.name}: {error}") from error
    finally:
        plt.close("all")

    said = [figure.published for figure in figures]
    images = [Path(next(paths)).with_suffix(".svg") for _ in figures]
    root = Path(gallery_conf["src_dir"]).resolve()
    addresses = [image.resolve().relative_to(root).as_posix() for image in images]
    record = {
        "script": _address(source, gallery_conf),
        "alt": said[0].alt,
        "alts": [each.alt for each in said],
        "numbers": said[0].numbers,
        "measured": said[0].measured,
        "images": addresses,
    }
    if said[0].data is not None:
        record["data"] = said[0].data
    folder = images[0].parent
    (folder / "png").mkdir(parents=True, exist_ok=True)
    for image, drawing, picture in zip(images, drawings, pictures, strict=True):
        write_whole(image, drawing)
        write_whole(folder / "png" / f"{image.stem}.png", picture)
    write_whole(folder / f"{source.stem}.json", json.dumps(record, ensure_ascii=False, indent=1) + "\n")
    return "".join(
        f"\n.. image:: /{address}\n   :alt: {each.alt}\n   :class: sphx-glr-single-img\n\n"
        for address, each in zip(addresses, said, strict=True)
    )


def _address(source: Path, gallery_conf: dict[str, Any]) -> str:
    """The script as the book names it: its path below the examples' folder, without the suffix."""
    roots = gallery_conf["examples_dirs"]
    for root in [roots] if isinstance(roots, str | Path) else roots:
        folder = (Path(gallery_conf["src_dir"]) / root).resolve()
        if source.resolve().is_relative_to(folder):
            return source.resolve().relative_to(folder).with_suffix("").as_posix()
    raise ValueError(f"{source}: not in any of sphinx-gallery's examples_dirs: {roots}")
