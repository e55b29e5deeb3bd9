"""Messages of the library in the words of the command line."""

from __future__ import annotations

import re

# What the library says of its arguments, and the option that sets it; the first that fits a place is used.
PHRASES = [
    (
        r"These rows must be complete: use ContraPCA, PCPCA or PPCA, which take missing values in dense tables",
        "With missing values use --method contrapca or pcpca",
    ),
    (r"\bcontrast_test (needs|takes)\b", r"The test \1"),
    (r"n_components=(\d+)", r"--components \1"),
    (r"\bn_components\b", "--components"),
    (r"n_features=(\d+)", r"\1 features"),
    (r"""gamma=['"]auto['"]""", "--gamma auto"),
    (r"gamma=(\d[\d.]*(?:e[-+]?\d+)?)", r"--gamma \1"),
    (r"""scale=['"](\w+)['"]""", r"--scale \1"),
    ("leave paired=True out, so that labels", "use --blocks instead of --pairs, whose labels"),
    (r"\b(blocks|pairs|covariates)= ", r"--\1 "),
    (r"\bblocks=", "--blocks "),
    (r"\b(blocks|pairs) has\b", r"--\1 has"),
    (r"n_folds=(\d+)", r"\1"),
    (r"""background_label=|\bbackground=""", "--background "),
    (r"\brandom_state\b", "--seed"),
    (r"\bgammas=(\d+)", r"--gammas \1"),
    (r"\bthe foreground\b", "the cases"),
    (r"\bThe foreground\b", "The cases"),
    (r"\bthe background\b", "the controls"),
    (r"\bThe background\b", "The controls"),
    (r"\bforeground rows\b", "cases"),
    (r"\bbackground rows\b", "controls"),
    (r"(?<=[Tt]he cases )varies|(?<=[Tt]he controls )varies", "vary"),
    (r"(?<=[Tt]he cases )has\b|(?<=[Tt]he controls )has\b", "have"),
]
# Calls with arguments, such as those that a message advises for Python, stay as they are.
CALL = re.compile(r"(\w+\((?:[^()=]|\([^()]*\))*=(?:[^()]|\([^()]*\))*\))")
METHOD = re.compile(r"(?<=\buse )(?:PPCA|PCPCA)\b|\b(?:PCPCA|CPCA|ContraPCA)(?=, which| still| models| allows)")
RULES = [(re.compile(pattern), words) for pattern, words in PHRASES]


def in_command_words(message: str) -> str:
    """A message with arguments of Python as options, and groups as cases and controls."""
    parts = CALL.split(message)
    parts[::2] = map(_reworded, parts[::2])
    return "".join(parts)


def _reworded(text: str) -> str:
    for pattern, words in RULES:
        text = pattern.sub(words, text)
    return METHOD.sub(lambda found: f"--method {found[0].lower()}", text)
