"""Grade a folder of submitted notebooks: ``python -m assignments.grader SUBMISSIONS OUT``.

`collect` finds the notebooks, `judge` has each run and runs its tests, `course` keeps the marks
through nbgrader, `report` writes what people read, and `__main__` does these things in order.

A student's code runs in a process that `execute` starts and `worker` is the program of: under what
`guard` refuses and what `watch` sees, with what `library` sends of `mha_lib`, and with `shell` to
run cells.  To `judge`,
a student's functions look like functions (`elsewhere`); what passes is data (`wire`).
"""
