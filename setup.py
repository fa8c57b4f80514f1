"""What pyproject.toml cannot say: a build compiles the Java parts first."""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent / "java"))

import agent_jar


class BuildWithAgent(build_py):
    """Makes ``kops/java/kops-agent.jar`` before the packages are collected, so a wheel and an editable install have it.

    Where it cannot be made, all else is installed, and ``kops streams capture`` says what it lacks.
    """

    def run(self) -> None:
        try:
            agent_jar.build()
        except RuntimeError as problem:
            agent_jar.TARGET.unlink(missing_ok=True)  # one of other sources is worse than none
            self.warn(f"kops is built without its Java agent, so `kops streams capture` will not work: {problem}")
        super().run()


setup(cmdclass={"build_py": BuildWithAgent})
