r"""Meet the world outside: the configurations models are released with, and the functions others wrote.

config    read any ``config.json``: groups of layers with one recipe, and what a reader would get wrong
probe     look at a function that rotates: which encoding it is, and which mistake it makes
adapters  other people's functions and modules in the form that the probe asks for
tables    look at what is added to the input or to the scores
findings  what all of them say
"""

from posbook.practice.probe import assert_matches as assert_matches
