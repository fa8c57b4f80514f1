"""What pyproject.toml cannot say: a build compiles the Java parts first."""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent / "java"))

import agent_jar


class BuildWithJars(build_py):
    """Makes the jars of ``kops/java`` before the packages are collected, so a wheel and an editable install have them.

    Where they cannot be made, all else is installed, and the commands that need them say what they lack.
    """

    def run(self) -> None:
        try:
            agent_jar.build()
            agent_jar.build_runner()
        except RuntimeError as problem:
            for jar in (agent_jar.TARGET, agent_jar.RUNNER):
                jar.unlink(missing_ok=True)  # one of other sources is worse than none
            self.warn(f"kops is built without its Java agent, so `kops streams capture` and --app will not work: {problem}")
        super().run()


setup(cmdclass={"build_py": BuildWithJars})
