"""What a saved file holds, and files that hold something else."""

import copy
import json

import numpy as np

from contrapca import load
from contrapca._files import HEADER, read, write
from contrapca.exceptions import ModelFileError


def contents(path):
    """The header of a file, as JSON has it, and its arrays by name."""
    arrays = read(path)
    return json.loads(arrays.pop(HEADER).tobytes()), arrays


def put(path, header, arrays):
    write(path, {HEADER: np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **arrays})


def changed(header, place, value):
    """A header with another value at a place such as "fit.scaling.names.0", or without it if the value is `...`."""
    header = copy.deepcopy(header)
    inside, (*way, last) = header["value"], [int(part) if part.isdigit() else part for part in place.split(".")]
    for part in way:
        inside = inside[part]
    if value is ...:
        del inside[last]
    else:
        inside[last] = value
    return header


def places(value, way=()):
    """(place, value) of everything inside a header's value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inside:
        yield ".".join(map(str, (*way, name))), one
        yield from places(one, (*way, name))


def rewrite(path, facts=(), arrays=()):
    """Change a file: facts by their place, arrays by name; `...` leaves out."""
    header, found = contents(path)
    for place, value in dict(facts).items():
        header = changed(header, place, value)
    put(path, header, {name: value for name, value in (found | dict(arrays)).items() if value is not ...})


def accepted(path, header, arrays):
    """Whether such a file is loaded; a refusal must name it, and any error but ModelFileError is raised."""
    put(path, header, arrays)
    try:
        with np.errstate(all="ignore"):
            load(path)
    except ModelFileError as error:
        said = str(error)
    else:
        return True
    assert path.name in said
    return False
