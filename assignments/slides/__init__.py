"""Slides of each chapter, made from its executed notebook by rules.

`outline` says what stands on which slide, nbconvert and reveal.js show it, and `deck` puts all that
a browser needs into one folder, so that a deck opens from its file, without a network.
"""
