r"""`explain` names the default that it took, the border that holds and the features that turn."""

import json

from typer.testing import CliRunner

from posbook.practice import config
from posbook.practice.cli import app


def explained(values, *arguments):
    """The exit code, and all that is printed, in one line."""
    result = CliRunner().invoke(app, ["explain", "-", *map(str, arguments)], input=json.dumps(values))
    return result.exit_code, " ".join(result.output.split())


def said(values):
    return [str(finding) for finding in config.read(values).findings]


T5 = {"model_type": "t5", "d_model": 512, "num_heads": 8, "num_layers": 6}
BUCKETS = {"relative_attention_num_buckets": 32}
DISTANCE = {"relative_attention_max_distance": 128}


def test_only_the_key_that_t5s_file_lacks_is_named():
    buckets = "D2 warning: no relative_attention_num_buckets: 32 is used"
    distance = "D2 warning: no relative_attention_max_distance: 128 is used"
    assert said(T5) == [buckets, distance]
    assert said(T5 | BUCKETS) == said(T5 | {"relative_attention_num_buckets": 16}) == [distance]
    assert said(T5 | DISTANCE) == [buckets]
    assert said(T5 | BUCKETS | DISTANCE) == []
