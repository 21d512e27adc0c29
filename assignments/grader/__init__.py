"""Grade a folder of submitted notebooks: ``python -m assignments.grader SUBMISSIONS OUT``.

`files` lists what was handed in, `people` reads the names that systems write, `roster` who should
have, and `collect` finds each person's notebook.  `judge` has it run and runs its tests.  `course`
keeps the marks through nbgrader, and `marks` those that people give; `points` holds all that speaks
of points to the cells.  `report` writes what people read, with tables of `exports` and what is
`similar`, and `__main__` does these things in order.

A student's code runs in a process that `execute` starts and `worker` is the program of: under what
`guard` refuses and what `watch` sees, with what `library` sends of `mha_lib`, and with `shell` to
run cells.  To `judge`,
a student's functions look like functions (`elsewhere`); what passes is data (`wire`).
"""
