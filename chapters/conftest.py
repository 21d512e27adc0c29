"""Run the notebooks under pytest as the build does."""

from _ext.execution import set_environment

set_environment()
