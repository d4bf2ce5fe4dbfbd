"""The command `haloscope`: one lazily loaded module per subcommand, one clear line per error, exit codes 0 to 3."""

from __future__ import annotations

import importlib
import os
import sys

import click

from haloscope import errors, guests
from haloscope.terminal import say

TRACE = "HALOSCOPE_TRACE"  # set: show the position of an internal error
STUDIES = "Studies"
# Subcommands of the library by group, in the order in which a newcomer needs them. Guests add to the last group.
GROUPS = {
    "Use": ("demo", "run", "tune", "advise", "doctor", "info"),
    "Understand": ("plan", "predict", "whatif", "map", "simulate", "validate", "compare", "report", "timeline"),
    "Machine": ("calibrate", "microbench", "lab"),
    "Your program": ("check",),
    STUDIES: ("study",),
}
COMMANDS = tuple(name for names in GROUPS.values() for name in names)


def guest_commands() -> list[str]:
    """Return the names of the subcommands that other distributions add, without names of the library."""
    return sorted(name for name in guests.find_guests(guests.COMMANDS) if name not in COMMANDS)


class LazyGroup(click.Group):
    """Subcommands are the modules in `haloscope.commands`, and entry points; each is imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all subcommands."""
        return [*COMMANDS, *guest_commands()]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a subcommand and return it; None for an unknown name."""
        found: click.Command | None = None
        if name in COMMANDS:
            found = importlib.import_module(f"haloscope.commands.{name}").command
        elif name in guest_commands():
            found = guests.load(guests.COMMANDS, name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands by group."""
        width = max(map(len, self.list_commands(ctx)))
        for title, names in (GROUPS | {STUDIES: (*GROUPS[STUDIES], *guest_commands())}).items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), self.summary(ctx, name, formatter.width)) for name in names])

    def summary(self, ctx: click.Context, name: str, width: int) -> str:
        """Return the summary of a subcommand, or the reason why it cannot be imported."""
        try:
            command = self.get_command(ctx, name)
        except errors.UnavailableError as error:
            return str(error)
        return command.get_short_help_str(width) if command else ""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Store the words, for commands that run again elsewhere."""
        ctx.meta["haloscope.words"] = list(args)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand. Raises UsageError with the nearest names for an unknown one."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            raise errors.UsageError(errors.unknown_name("command", name, self.list_commands(ctx)))
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"max_content_width": 110})
@click.version_option(package_name="haloscope")
def cli() -> None:
    """Measure, predict and choose halo exchange for structured grids.

    \b
    Start with:  haloscope demo
    Then:        haloscope run laplace2d --cells 2048x2048 --ranks 2 --depth 1,2,4,8

    Exit codes: 0 ok, 1 failed, 2 usage, 3 not available here.
    """


def usage_message(error: click.UsageError, words: list[str]) -> str:
    """Return click's usage error as one line: the words, the fault, the remedy."""
    command = error.ctx.command_path if error.ctx else " ".join(["haloscope", *(w for w in words[:1] if w in COMMANDS)])
    if isinstance(error, click.NoSuchOption):
        parameters = error.ctx.command.get_params(error.ctx) if error.ctx else []
        known = [o for p in parameters for o in p.opts + p.secondary_opts]
        near = errors.nearest(error.option_name, known)
        meant = f"did you mean {' or '.join(near)}? " if near else ""
        everything = "--help-all" if "--help-all" in known else "--help"
        return f"unknown option '{error.option_name}'; {meant}'{command} {everything}' lists all"
    return f"{error.format_message().rstrip('.')} (see '{command} --help')"


def owner_of_command(words: list[str]) -> str:
    """Return the name of the distribution of a command, for reports of its faults."""
    name = words[0] if words else ""
    return guests.owner_of(guests.COMMANDS, name) if name in guest_commands() else "haloscope"


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 ok, 1 failed, 2 usage, 3 not available here."""
    try:
        return cli.main(args=argv, prog_name="haloscope", standalone_mode=False) or errors.OK
    except click.UsageError as error:
        if isinstance(error, click.exceptions.NoArgsIsHelpError):
            print(error.format_message())
        else:
            say(usage_message(error, sys.argv[1:] if argv is None else argv))
        return errors.USAGE
    except click.ClickException as error:
        say(error.format_message())
        return errors.FAILED
    except (click.Abort, KeyboardInterrupt):
        say("interrupted")
        return errors.FAILED
    except errors.HaloscopeError as error:
        say(str(error))
        return error.exit_code
    except BrokenPipeError:
        sys.stderr.close()
        return errors.OK
    except OSError as error:
        say(f"{error.filename or 'file system'}: {error.strerror or error}")
        return errors.FAILED
    except Exception as error:
        if os.environ.get(TRACE):
            raise
        owner = owner_of_command(sys.argv[1:] if argv is None else argv)
        say(f"a fault of {owner} itself, {type(error).__name__}: {error}; {TRACE}=1 shows where it is, for a report")
        return errors.FAILED


if __name__ == "__main__":
    sys.exit(main())
