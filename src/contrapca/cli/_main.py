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
    ContrastWarning,
    GroupError,
    InfeasibleGammaError,
    MissingExtraError,
    RankError,
    SingularGroupError,
    SolverError,
    TableFileError,
    TableWarning,
    UnboundedError,
)
from ._console import say
from ._parser import COMMANDS, make_parsers, parse

GROUPS = {"foreground": "cases", "background": "controls"}
SAVED = ("transform", "sample", "info")  # commands about a saved file: one module
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
    options.progress = not options.quiet
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # do not fail on names that a terminal cannot show
    try:
        with warnings.catch_warnings():
            _speak_warnings()
            command = getattr(importlib.import_module(f".{module_of(options.command)}", __package__), options.command)
            say(*command(options), quiet=options.quiet, as_json=options.json)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough; all files are written by now
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return _fail("stopped; nothing was written.", INTERRUPTED, options)
    except MemoryError:
        return _fail("there is not enough memory for these tables.", BAD_INPUT, options)
    except (OSError, ValueError, ImportError, SolverError) as error:
        return _fail(_sentence(error, *(vars(options).get(name) for name in ("method", "scale"))), BAD_INPUT, options)
    except Exception as error:
        reason = f"{type(error).__name__}: {_one_line(error)}"
        return _fail(f"a bug ({reason}); please run it again with --debug and report what it says.", BUG, options)
    return GOOD


def module_of(command: str) -> str:
    """The module with the function of a command: `_` and its name, but for those about a saved file."""
    return "_saved" if command in SAVED else f"_{command}"


def _fail(sentence: str, code: int, options: Namespace) -> int:
    if options.debug:
        traceback.print_exc()
    print(f"contrapca: {sentence}", file=sys.stderr)
    return code


def _sentence(error: BaseException, method: str | None, scale: str | None) -> str:
    """An error in one line: what an option can mend in options, and of the system's errors no number."""
    match error:
        case TableFileError() | GroupError():
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
                works = f"--gamma {format_gamma(error.works)}"
                way_out = (
                    f"The largest that was tried and works is {works}, and {format_gamma(error.limit)} is an upper "
                    f"bound: nothing from there on can work. Use {works}, --gamma auto, or fewer --components."
                )
                if method == "contrapca" and scale == "auto":  # it then chooses units together with gamma only
                    way_out += " (--gamma auto may also choose units, in which other gammas work: see --scale.)"
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
        line = _one_line(message.text("command") if isinstance(message, ContrastWarning) else message)
        if type(message).__name__ == "ConvergenceWarning":  # of scikit-learn, which need not be imported for its name
            line = "The fit did not converge. Use a smaller --gamma, fewer --components, or --scale pooled."
        if line not in said:  # the fit and the test may both say it
            print(f"contrapca: warning: {line}", file=sys.stderr)
        said.add(line)

    warnings.showwarning = show
    warnings.simplefilter("default")
    for category in (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", category)
    warnings.simplefilter("ignore", TableWarning)  # the checks of the tables are printed as cautions
    # Tables are brought into the order of the model's features by name before it sees them.
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
