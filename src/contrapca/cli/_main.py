"""From arguments to an exit code: warnings and errors are sentences on standard error."""

from __future__ import annotations

import importlib
import io
import math
import os
import sys
import traceback
import warnings
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from .._util.text import format_gamma, plural
from ..exceptions import (
    InfeasibleGammaError,
    MissingExtraError,
    RankError,
    SingularGroupError,
    SolverError,
    TableFileError,
    TableWarning,
    UnboundedError,
)
from ._console import Console
from ._parser import COMMANDS, make_parsers, parse

GROUPS = {"foreground": "cases", "background": "controls"}
GOOD, BUG, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the program's name; those of the process unless given.

    Returns
    -------
    int
        0: done; 1: a bug; 2: something given cannot be used; 130: stopped by Ctrl-C.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    if not given:
        make_parsers()[0].print_help()
        return GOOD
    if given[0] in COMMANDS and given[0] != "demo" and len(given) == 1:  # which need arguments
        make_parsers()[1][given[0]].print_help(sys.stderr)
        return BAD_INPUT
    options = parse(given)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # do not fail on names that a terminal cannot show
    try:
        with warnings.catch_warnings():
            _speak_warnings()
            module = importlib.import_module(f"._{options.command}", __package__)  # has a function of that name
            getattr(module, options.command)(options, Console(options.quiet, options.json))
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough; all files are written by now
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return _fail("stopped; nothing was written.", INTERRUPTED, options)
    except MemoryError:
        return _fail("there is not enough memory for these tables.", BAD_INPUT, options)
    except (OSError, ValueError, ImportError, SolverError) as error:
        return _fail(_sentence(error, getattr(options, "method", None)), BAD_INPUT, options)
    except Exception as error:
        reason = f"{type(error).__name__}: {_one_line(error)}"
        return _fail(f"a bug ({reason}); please run it again with --debug and report what it says.", BUG, options)
    return GOOD


def _fail(sentence: str, code: int, options: Namespace) -> int:
    if options.debug:
        traceback.print_exc()
    print(f"contrapca: {sentence}", file=sys.stderr)
    return code


def _sentence(error: BaseException, method: str | None) -> str:
    """An error in one line: what an option can mend in options, and of the system's errors no number."""
    match error:
        case TableFileError():
            return _one_line(error.text("command"))
        case MissingExtraError() if "contrapca[tables]" in str(error):  # which the next command would not be enough for
            more = ', or with all that reports and figures need, too: pip install "contrapca[report]"'
            return f"{_one_line(error)}{more}."
        case RankError():
            d = error.size
            return (
                f"The {GROUPS[error.group]} do not vary in more than {plural(d, 'direction')} (beyond rounding), as "
                f"they must for a model of {plural(d, 'dimension')}. Use fewer --components or more rows; if a few "
                "features are many orders of magnitude larger than the others, add --scale pooled."
            )
        case UnboundedError():
            where = "" if math.isnan(error.limit) else f" at --gamma {error.gamma:.6g}"
            way_out = "Use fewer --components, or rows and features with more observed values."
            if error.works is not None:
                way_out = (
                    f"--gamma {format_gamma(error.works)} works, and none at or above {format_gamma(error.limit)}. Use "
                    "that, --gamma auto, or fewer --components."
                )
            return f"With these missing values there is no best model{where}: {error.reason}. {way_out}"
        case InfeasibleGammaError() if not isinstance(error, SingularGroupError):
            weaker = method in ("contrapca", "pcpca")
            others = "fewer --components, or --method cpca" if weaker else "or fewer --components"
            return (
                f"--gamma {error.gamma:.6g} is too large: with {plural(error.size, 'dimension')} these tables "
                f"allow less than {format_gamma(error.limit)}. Use a smaller --gamma, --gamma auto, {others}."
            )
    if isinstance(error, OSError) and error.strerror:
        file = f"{str(error.filename)!r}: " if error.filename else ""
        return f"{file}{error.strerror}."
    return _one_line(error) or type(error).__name__


def _one_line(message: Any) -> str:
    return " ".join(str(message).split())


def _speak_warnings() -> None:
    """Show warnings as lines of ours, each once, without those that are for programmers."""
    said = set()

    def show(message: Any, *_: Any, **__: Any) -> None:
        if (line := _one_line(message)) not in said:  # the fit and the test may both say it
            print(f"contrapca: warning: {line}", file=sys.stderr)
        said.add(line)

    warnings.showwarning = show
    warnings.simplefilter("default")
    for category in (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", category)
    warnings.simplefilter("ignore", TableWarning)  # the checks of the tables are printed as cautions
    # Tables are brought into the order of the model's features by name before it sees them.
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
