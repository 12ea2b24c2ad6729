"""Print the requirements of the project and of one of its extras, a line each for
`pip install -r`, without the project itself."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def main() -> None:
    path = Path(__file__).parent.parent / "pyproject.toml"
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    print(*project["dependencies"], *project["optional-dependencies"][sys.argv[1]], sep="\n")


if __name__ == "__main__":
    main()
