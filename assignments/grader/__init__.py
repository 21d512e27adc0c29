"""Grade a folder of submitted notebooks: ``python -m assignments.grader SUBMISSIONS OUT``.

`collect` finds the notebooks, `execute` runs each in processes of its own under limits (with
`guard` inside), `course` gives and keeps the marks through nbgrader, `report` writes what people
read, and `__main__` does these things in order.
"""
