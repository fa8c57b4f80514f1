"""What pyproject.toml cannot say: a build compiles the Java parts first."""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent / "java"))

import agent_jar


class BuildWithAgent(build_py):
    """Makes ``kops/java/kops-agent.jar`` before the packages are collected, so a wheel and an editable install have it."""

    def run(self) -> None:
        agent_jar.build()
        super().run()


setup(cmdclass={"build_py": BuildWithAgent})
