"""`haloscope best`: answers C++ programs that call `haloscope::best`. JSON in, JSON out."""

from __future__ import annotations

import dataclasses
import json

import click

from haloscope.errors import UsageProblem, unknown_name

_COUNT = {"type": "integer", "minimum": 1}
REQUEST = {
    "app": {"type": ["string", "integer"]},
    "cells": {"type": "array", "items": _COUNT},
    "ranks": _COUNT,
    "profile": {"type": "string"},
    "periodic": {"type": "array", "items": {"type": "boolean"}},
    "process_grid": {"type": "string"},
    "threads": _COUNT,
    "real": {"type": "string"},
    "form": {"type": "string"},
    "nodes": {"type": "integer", "minimum": 0},
    "depths": {"type": "array", "items": _COUNT, "minItems": 1},
    "seconds_per_cell": {"type": "number"},
    "fused": {"type": "boolean"},
    "halo": {"type": "integer", "minimum": 0},
    "shared_memory": {"type": "boolean"},
    "samples": {"type": "integer", "minimum": 0},
    "here": {"type": "object", "additionalProperties": {"type": "string"}},
}
NEEDED = ("app", "cells", "ranks", "profile")


@click.command(short_help="The best choice alone, as JSON: for programs that ask.")
@click.argument("request")
def command(request):
    """Answer REQUEST, a JSON object with the arguments of the Python function haloscope.best, with its result as JSON.

    \b
    haloscope best '{"app": "laplace2d", "cells": [512, 384], "ranks": 4, "profile": "machine.json"}'

    C++ programs call haloscope::best, which asks this command. To read advice yourself, use haloscope advise.
    """
    asked = parsed(request)
    from haloscope.advice import best as advice
    from haloscope.commands import info

    if "here" in asked:  # the program that asks runs on this machine
        asked["here"] = {"cpu": info.cpu(), **asked["here"]}
    click.echo(json.dumps(document(advice.best(**asked)), indent=1))


def parsed(text: str) -> dict:
    """Return the request. Raises UsageProblem when it is no JSON object, lacks a key, or has an unknown or wrong one."""
    try:
        asked = json.loads(text)
    except ValueError as error:
        raise UsageProblem(f"the request is no JSON ({error}); see 'haloscope best --help' for one that is") from None
    if not isinstance(asked, dict):
        raise UsageProblem("the request is no JSON object; see 'haloscope best --help' for one that is")
    for key in asked:
        if key not in REQUEST:
            raise UsageProblem(unknown_name("key of the request", key, REQUEST))
    for key in NEEDED:
        if key not in asked:
            raise UsageProblem(f"the request lacks '{key}'; it needs {', '.join(NEEDED)}")
    from jsonschema import Draft202012Validator

    for error in Draft202012Validator({"properties": REQUEST}).iter_errors(asked):
        raise UsageProblem(f"'{error.absolute_path[0]}' of the request cannot be used: {error.message}; correct it")
    return asked


def document(best) -> dict:
    """Return a `haloscope.advice.Best` as plain data."""
    return {
        "schema": "haloscope.best",
        "schema_version": 1,
        **dataclasses.asdict(best),
        "choice": best.choice.to_json(),
        "equals": [choice.to_json() for choice in best.equals],
        "halo": best.halo,
        "shared_memory": best.shared_memory,
    }
