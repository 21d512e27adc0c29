"""Tests of the library, the notebooks and the built book."""
