"""A bank of exam questions, made from the catalogue of mistakes and the library's own counts.

`assignments.exam.bank` makes the questions, `assignments.exam.export` writes them for
learning-management systems.  ``python -m assignments.exam OUT`` does both.
"""
