import re
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from test_style import contrast

from posbook.figures import curves, heatmaps, style, tokens


@pytest.fixture(autouse=True)
def _in_the_style():
    with plt.style.context("posbook.figures.posbook"):
        yield
    plt.close("all")


@pytest.mark.parametrize("diverging", [False, True])
def test_a_number_in_a_cell_is_legible_on_every_step_in_both_themes(diverging):
    ramp, low = (style.DIVERGING, -1.0) if diverging else (style.SEQUENTIAL, 0.0)
    # The middle of each step, so that every colour of the map occurs.
    values = low + (1 - low) * (np.arange(len(ramp)) + 0.5) / len(ramp)
    _, ax = plt.subplots()
    mesh = heatmaps.cells(ax, values[None], limits=(low, 1), diverging=diverging, annotate=".2f")
    ax.figure.draw_without_rendering()
    grounds = [plt.matplotlib.colors.to_hex(c) for c in mesh.get_facecolors()]
    assert grounds == [step.light for step in ramp]
    for ground, text in zip(grounds, ax.texts, strict=True):
        assert contrast(ground, text.get_color()) >= 4.5
        assert contrast(style.DARK[ground], style.DARK[text.get_color()]) >= 4.5


def test_cells_stand_where_their_row_and_column_say():
    _, ax = plt.subplots()
    heatmaps.cells(
        ax, torch.tensor([[0.0, 1.0]]), rows=["q"], columns=["a", "b"], limits=(0, 1), annotate=".0f"
    )
    assert [(t.get_text(), t.get_position()) for t in ax.texts] == [("0", (0.5, 0.5)), ("1", (1.5, 0.5))]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["a", "b"]
    assert ax.yaxis_inverted()


def test_a_cell_without_a_value_has_the_colour_of_the_ground_and_no_number():
    _, ax = plt.subplots()
    mesh = heatmaps.cells(ax, torch.tensor([[0.5, torch.nan]]), limits=(0, 1), annotate=".1f")
    ax.figure.draw_without_rendering()
    assert plt.matplotlib.colors.to_hex(mesh.get_facecolors()[1]) == style.colour("paper")
    assert [t.get_text() for t in ax.texts] == ["0.5"]


@pytest.mark.parametrize("shape,options,message", [
    ((2, 2), {"limits": (0, 0.5)}, "leave the limits"),
    ((2, 2), {"limits": (1, 0)}, "low to high"),
    ((2, 2), {"limits": (0, 1), "diverging": True}, "0 in its middle"),
    ((2, 2), {"limits": (0, 1), "rows": "abc"}, "3 names for 2 rows"),
    ((2, 2), {"limits": (0, 1), "columns": "a"}, "1 names for 2 columns"),
    ((65, 2), {"limits": (0, 1)}, "64 × 64"),
])  # fmt: skip
def test_a_matrix_that_does_not_fit_its_description_is_refused(shape, options, message):
    _, ax = plt.subplots()
    with pytest.raises(ValueError, match=message):
        heatmaps.cells(ax, torch.ones(shape), **options)


def test_long_names_of_columns_are_set_upright():
    _, (a, b) = plt.subplots(1, 2)
    heatmaps.cells(a, torch.zeros(8, 8), limits=(0, 1), columns=["sentences"] * 8)
    heatmaps.cells(b, torch.zeros(2, 2), limits=(0, 1), columns=["a", "b"])
    assert a.get_xticklabels()[0].get_rotation() == 90
    assert b.get_xticklabels()[0].get_rotation() == 0


def test_labels_at_the_ends_do_not_overlap_and_keep_the_order_of_their_lines():
    _, ax = plt.subplots()
    ends = {"none": 1.0, "rope": 1.001, "alibi": 1.002, "t5": 0.999, "shaw": 3.0}
    for name, end in ends.items():
        curves.curve(ax, [0, 1], [0, end], name, label=name)
    notes = curves.label_ends(ax)
    ax.figure.draw_without_rendering()
    boxes = sorted(((n.get_window_extent(), n.get_text()) for n in notes), key=lambda b: b[0].y0)
    assert [name for _, name in boxes] == sorted(ends, key=ends.get)
    for (below, _), (above, _) in pairwise(boxes):
        assert above.y0 >= below.y1


def test_a_label_with_room_stays_at_the_end_of_its_line():
    _, ax = plt.subplots()
    curves.curve(ax, [0, 1], [0, 1], "rope", label="up")
    curves.curve(ax, [0, 1], [0, -1], "alibi", label="down")
    assert [note.get_position()[1] for note in curves.label_ends(ax)] == [0, 0]


def test_a_label_of_a_line_that_leaves_the_axes_stands_at_their_edge():
    _, ax = plt.subplots()
    for role, end in {"rope": 9, "alibi": -9, "t5": 0.5}.items():
        curves.curve(ax, [0, 1], [0.2, end], role, label=role)
    ax.set_ylim(1, 0)  # also where the axis is turned round
    notes = curves.label_ends(ax)
    ax.figure.draw_without_rendering()
    middles = [ax.transAxes.inverted().transform(n.get_window_extent())[:, 1].mean() for n in notes]
    assert np.allclose(middles, [0, 1, 0.5], atol=0.02)


def test_a_curve_wears_the_look_of_its_encoding():
    _, ax = plt.subplots()
    line = curves.curve(ax, range(100), range(100), "t5", seeds=np.zeros((3, 100)))
    assert (line.get_color(), line.get_marker()) == (style.look("t5").colour, style.look("t5").marker)
    assert len(ax.get_lines()) == 1 + 3
    bare = curves.curve(ax, range(100), range(100), "t5", markers=False)
    assert (bare.get_color(), bare.get_linestyle()) == (line.get_color(), line.get_linestyle())
    assert bare.get_marker() == ""
    with pytest.raises(ValueError, match="each of 2 places, not 3"):
        curves.curve(ax, [0, 1], [0, 1], "rope", seeds=[[1, 2, 3]])


def test_a_difference_of_exactly_nothing_is_drawn_on_a_logarithmic_axis():
    _, ax = plt.subplots()
    ax.set_xscale("log")
    curves.dots(ax, ["a", "b"], {"exact": [0.0, 0.0], "float": [1e-16, 1e-12]}, ["query", "key"])
    ax.figure.draw_without_rendering()
    ticks = {t.get_text(): t.get_position()[0] for t in ax.get_xticklabels()}
    drawn = [x for line in ax.get_lines() for x in line.get_xdata()]
    assert drawn.count(ticks["0"]) == 2
    assert {1e-16, 1e-12} <= set(drawn)
    for name, place in ticks.items():
        if power := re.search(r"10\^\{(-?\d+)\}", name):
            assert place == pytest.approx(10.0 ** int(power[1]))


def test_dots_refuse_what_has_no_place():
    _, ax = plt.subplots()
    with pytest.raises(ValueError, match="2 values, one for a row"):
        curves.dots(ax, ["a", "b"], {"x": [1.0]}, ["query"])
    ax.set_xscale("log")
    with pytest.raises(ValueError, match="no place for -1"):
        curves.dots(ax, ["a"], {"x": [-1.0]}, ["query"])


def test_a_line_joins_each_word_to_its_place_in_the_other_order():
    _, ax = plt.subplots()
    above, below = tokens.row(ax, "abc", positions=range(3)), tokens.row(ax, "cab", y=-2)
    before = len(ax.patches)
    tokens.connect(ax, above, below, [2, 0, 1])
    joined = {
        (p._path_original.vertices[0][0], p._path_original.vertices[-1][0]) for p in ax.patches[before:]
    }
    assert joined == {(2.0, 0.0), (0.0, 1.0), (1.0, 2.0)}


def test_rows_and_orders_that_do_not_match_are_refused():
    _, ax = plt.subplots()
    row = tokens.row(ax, "abc")
    with pytest.raises(ValueError, match="no permutation of 3"):
        tokens.connect(ax, row, row, [0, 0, 1])
    with pytest.raises(ValueError, match="3 words"):
        tokens.row(ax, "abc", roles=["query"])
    with pytest.raises(ValueError, match="3 words"):
        tokens.row(ax, "abc", positions=[0])
