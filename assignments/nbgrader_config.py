"""Settings of the course, for every nbgrader command that runs in this folder."""

c = get_config()  # noqa: F821 - nbgrader puts it there

c.CourseDirectory.course_id = "multi_head_attention"
c.ClearSolutions.code_stub = {"python": "# YOUR CODE HERE\nraise NotImplementedError()"}
c.ClearSolutions.text_stub = "YOUR ANSWER HERE"

# A cell that does not end is stopped, and the next one runs.
c.Execute.timeout = 60  # seconds
c.Execute.interrupt_on_timeout = True
