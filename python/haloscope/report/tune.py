"""`haloscope tune` for readers: the choice, the trials, the comparison with others, and the candidates left out."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Iterable

from haloscope.advice import advise
from haloscope.advice import tune as model
from haloscope.advice.tune import Order, Rerun, TrialRounds
from haloscope.advice.tuning import Exhaustive, Tuned
from haloscope.measure.request import Request
from haloscope.measure.space import Space
from haloscope.model.profile import Profile
from haloscope.records import stats
from haloscope.report import tables
from haloscope.report.code import code_for


def markdown(tuned: Tuned, top: int) -> str:
    """Return the whole report. top: most rows of the table of trials."""
    trials, chosen, again = tuned.trials, tuned.chosen, tuned.again
    parts = [
        _title(chosen, tuned.profile),
        _trials(trials, top),
        _confirmed(chosen, tuned.measured, again) if again else "",
        _spent(trials, again),
        _against_all(trials, chosen, tuned.exhaustive) if tuned.exhaustive else "",
        code_for(chosen.choice),
        _left_out(trials, tuned.order, tuned.space),
        *(f"Note: {text}." for text in tuned.complaints),
    ]
    return "\n\n".join(filter(None, parts))


def _words(request: Request) -> str:
    """Return a candidate's distinguishing fields, in terms of the command line."""
    c = request.choice
    words = advise.name(c)
    for name in ("process_grid", "threads", "tiles", "sharing"):
        value = getattr(c, name)
        words += f", {name.replace('_', '-')} {value}" * (value != getattr(type(c), name))
    return words


def _title(chosen: Request, machine: Profile | None) -> str:
    case = f"{chosen.choice.app}, {chosen.choice.shape} cells, {chosen.ranks} ranks"
    first = f"# Tuned: {case}\n\n**{_words(chosen)}** is the choice."
    if machine:
        return f"{first} Candidates were tried in the order that profile '{machine.name}' predicts."
    calibrate = importlib.util.find_spec("haloscope.commands.calibrate")
    remedy = "make a profile with `haloscope calibrate`" if calibrate else "pass a machine profile with --profile"
    return f"{first} Without a profile, candidates were tried in random order; {remedy} to try the best ones first."


def _trials(trials: TrialRounds, top: int) -> str:
    shown = [e for e in trials.ranking if e.launches][:top]
    unit, factor = tables.unit(e.time_s for e in shown)
    rows = []
    for place, e in enumerate(shown, 1):
        predicted = tables.number(e.predicted_s * factor) if e.predicted_s else ""
        times = [tables.number(e.time_s * factor), predicted]
        rows.append([place, _words(e.request), *times, e.rounds, e.fate or "in to the end"])
    headers = ["#", "candidate", f"measured ({unit})", f"predicted ({unit})", "rounds", "why not further"]
    measured = sum(bool(e.launches) for e in trials.candidates)
    noise = ", ".join(f"{value:.0%}" for value in trials.seen_noise)
    words = f"{measured} of {len(trials.candidates)} candidates measured; noise between launches by round: {noise}."
    words += " Times are at the pace of the first launch." * trials.level.in_use
    return f"{words}\n\n" + tables.markdown(rows, headers, right=("#", *headers[2:5]))


def _confirmed(chosen: Request, measured: Iterable[Request], again: Rerun) -> str:
    rows = []
    for other in dict.fromkeys(c for c in measured if c.id != chosen.id):
        ratio = again.ratio(other, chosen)
        name = _words(other) + " (the default)" * model.is_default(other)
        if ratio is None:
            rows.append([name, "", "", "not measured again: see the notes"])
            continue
        verdict = stats.verdict_text(ratio, "the choice is faster", "the choice is slower")
        rows.append([name, f"{ratio.value:.3f}", tables.interval(ratio, "{:.3f}".format), verdict])
    if not rows:
        return "The choice is the default; without another candidate, it was not compared."
    table = tables.markdown(rows, ["against", "speed-up", "95 %", "verdict"], right=("speed-up",))
    return f"## Measured again, interleaved\n\n{table}"


def _spent(trials: TrialRounds, again: Rerun | None) -> str:
    confirming = again.wall_s if again else 0.0
    spent, whole = trials.spent_s + confirming, trials.exhaustive_s
    return (
        f"Measured for {trials.spent_s:.1f} s to choose and {confirming:.1f} s to confirm: {spent / whole:.0%} of the "
        f"{whole:.0f} s that one launch of each of the {len(trials.candidates)} candidates would take "
        f"({trials.spent_s / whole:.0%} without confirming)."
    )


def _against_all(trials: TrialRounds, chosen: Request, whole: Exhaustive) -> str:
    best, ratio = whole.best, whole.regret
    words = f"## Against all candidates\n\nAll candidates took {whole.wall_s:.1f} s; "
    words += f"choosing took {trials.spent_s / whole.wall_s:.0%} of that. "
    if best.id == chosen.id:
        return f"{words}The choice is the fastest of all: regret 1."
    if ratio is None:
        return f"{words}The fastest, {_words(best)}, could not be measured again."
    verdict = stats.verdict_text(ratio, "the choice is slower", "the choice is faster")
    return (
        f"{words}The fastest was {_words(best)}. Both measured again, interleaved: regret {ratio.value:.3f} "
        f"({tables.interval(ratio, '{:.3f}'.format)}), {verdict}."
    )


def _left_out(trials: TrialRounds, order: Order, planned: Space) -> str:
    """Count the dropped candidates by reason: illegal, failed, without a price."""
    lines = [f"- {count} cannot be: {reason}" for reason, count in Counter(r for _, r in planned.refused).most_common()]
    failed = Counter(e.fate for e in trials.candidates if e.fate.startswith("failed"))
    lines += [f"- {count} {reason}" for reason, count in failed.most_common()]
    never = [e for e in trials.candidates if not e.launches and not e.fate.startswith("failed")]
    lines += [f"- {len(never)} not measured: the time limit came before their turn"] if never else []
    lines += [f"- {count} tried last, as they have no prediction: {reason}" for reason, count in order.unpriced.items()]
    return "## Left out\n\n" + "\n".join(lines) if lines else ""
