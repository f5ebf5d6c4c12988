"""The rooms: one way of data, no import circle, few modules a folder, one name in site-packages."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("sessionquery", "pipeline", "classifier", "runtime", "exporters", "interfaces")
MODULES = {
    ".".join(("dsh_memory", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
}
MOST_MODULES = {"sessionquery/generations": 20, "interfaces/cli": 24, "pipeline/shared": 20}
"""Folders that may have more than 14 modules: one step, one command, one shared rule a module."""

LOWER = {
    "sessionquery": (),
    "runtime": (),
    "exporters": ("runtime",),
    "classifier": ("runtime",),
    "pipeline": ("runtime", "exporters", "classifier", "sessionquery"),
    "interfaces": ("pipeline", "runtime", "exporters", "classifier", "sessionquery"),
}
"""What each package may import; `sessionquery` still takes the root of the error tree."""


def imports(module: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dsh_memory"):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in MODULES else str(node.module))
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("dsh_memory")}
    return found - {module}


IMPORTS = {module: imports(module) for module in MODULES}


def test_every_import_inside_the_program_goes_through_its_one_name() -> None:
    strays = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in MODULES.values()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom)
        and (node.level > 0 or (node.module or "").split(".")[0] in PACKAGES)
    ]
    assert strays == []


def test_no_module_imports_itself_through_others() -> None:
    """Type-checking imports count too: a circle of names is a circle of ideas."""
    order = itertools.count()
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    circles: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = next(order)
        stack.append(module)
        for target in IMPORTS.get(module, ()):
            if target not in index:
                visit(target)
                low[module] = min(low[module], low[target])
            elif target in stack:
                low[module] = min(low[module], index[target])
        if low[module] == index[module]:
            circle = [stack.pop()]
            while circle[-1] != module:
                circle.append(stack.pop())
            if len(circle) > 1:
                circles.append(circle)

    for module in MODULES:
        if module not in index:
            visit(module)
    assert circles == []


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_imports_upwards(package: str) -> None:
    allowed = {package, *LOWER[package]}
    strays = [
        f"{module} -> {target}"
        for module, targets in IMPORTS.items()
        if module.split(".")[1] == package
        for target in targets
        if target != "dsh_memory" and target.split(".")[1] not in allowed
    ]
    if package == "sessionquery":
        strays = [line for line in strays if not line.endswith("-> dsh_memory.runtime.errors")]
    assert strays == []


def test_a_folder_holds_what_one_can_overlook() -> None:
    counts = Counter(
        str(path.parent.relative_to(ROOT))
        for path in MODULES.values()
        if path.name != "__init__.py"
    )
    assert {folder: n for folder, n in counts.items() if n > MOST_MODULES.get(folder, 14)} == {}


@pytest.mark.parametrize("path", [p for p in MODULES.values() if p.name == "__init__.py"], ids=str)
def test_every_room_says_what_lives_there(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text("utf-8")))
