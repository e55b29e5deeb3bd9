"""Print the oldest versions of everything that the tests need, for pip: "numpy>=2.0" becomes "numpy==2.0"."""

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements(extra: str) -> set[str]:
    """What an extra asks for, and what the extras of ours that it names ask for."""
    found = set()
    for requirement in PROJECT["optional-dependencies"][extra]:
        if own := re.fullmatch(rf"{PROJECT['name']}\[(.+)\]", requirement):
            found |= set().union(*(requirements(name.strip()) for name in own[1].split(",")))
        else:
            found.add(requirement)
    return found


if __name__ == "__main__":
    needed = {*PROJECT["dependencies"], *requirements("test")}
    print(*sorted(requirement.replace(">=", "==") for requirement in needed))
