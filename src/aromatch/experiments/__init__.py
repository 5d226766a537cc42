"""Experiments: settings in, numbers and figures out."""

from .demo import DemoReport, run_demo

__all__ = ["DemoReport", "run_demo"]
