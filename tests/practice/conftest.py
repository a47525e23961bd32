r"""The peers, imported once, as in tests/peers."""

from tests.peers.conftest import family as family
from tests.peers.conftest import rotary_embedding_torch as rotary_embedding_torch
from tests.peers.conftest import x_transformers as x_transformers
