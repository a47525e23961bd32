r"""The peers, imported once: transformers takes seconds, and only the families that are asked for."""

import importlib
import os
import warnings

import pytest

# transformers reads it when it is imported: a class is built from a tiny configuration or not at all.
os.environ["HF_HUB_OFFLINE"] = "1"


@pytest.fixture(scope="session")
def family():
    """The module of one family of transformers: ``family("llama")``, ``family("llama", "configuration")``."""
    return lambda name, kind="modeling": importlib.import_module(f"transformers.models.{name}.{kind}_{name}")


@pytest.fixture(scope="session")
def rope_init():
    """The functions of transformers that scale frequencies, by ``rope_type``."""
    return importlib.import_module("transformers.modeling_rope_utils").ROPE_INIT_FUNCTIONS


@pytest.fixture(scope="session")
def vision():
    return importlib.import_module("transformers.vision_utils")


@pytest.fixture(scope="session")
def rotary_embedding_torch():
    return importlib.import_module("rotary_embedding_torch")


@pytest.fixture(scope="session")
def x_transformers():
    with warnings.catch_warnings():
        # Its attention compiles two helpers with torch.jit.script while it is imported.
        warnings.filterwarnings("ignore", "`torch.jit.script` is deprecated", DeprecationWarning)
        return importlib.import_module("x_transformers.x_transformers")
