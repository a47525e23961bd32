r"""Meet the world outside: the configurations models are released with, and the functions others wrote."""
