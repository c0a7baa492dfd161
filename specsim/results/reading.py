"""How wide to read a result, and what it does not cover."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from specsim.hardware.guess import bounds, is_shown
from specsim.results.provenance import Provenance

_FEW_PROMPTS = 10
_DISTANCE = "total variation of the next token from the target {}"


@dataclass(frozen=True, slots=True)
class Caveat:
    """What limits the reading of a result, in a sentence or more.

    Examples
    --------
    >>> Caveat("Only {} prompts.", ("4",)).text
    'Only 4 prompts.'
    """

    words: str
    """What all results of a kind share, with a slot for each detail."""
    details: tuple[str, ...] = ()
    """What is this result's own: numbers, names."""
    is_of_prompts: bool = False
    """It is about intervals over the prompts of one run, which replications replace by their own."""

    @property
    def text(self) -> str:
        """The whole."""
        return self.words.format(*self.details) if self.details else self.words


def readings(provenance: Provenance) -> Iterator[Caveat]:
    """Yield how wide to read a result: what its intervals cover, its profile and its prices rest on."""
    yield Caveat("The intervals cover the choice of prompts only.", is_of_prompts=True)
    yield _accuracy(provenance)
    if provenance.price is not None:
        yield Caveat("Dollars are for the whole time of a run: {}.", (provenance.price,))


def _accuracy(provenance: Provenance) -> Caveat:
    if provenance.profile_kind == "unit":
        return Caveat(
            "Costs count target steps (closed form): the result holds where a target step takes the same "
            "time whatever it verifies."
        )
    error, power_error = provenance.held_out_error, provenance.held_out_power_error
    if provenance.profile_kind == "datasheet" and error is not None and power_error is not None:
        return Caveat(
            "Step times are a datasheet profile's, {} off on average on measured runs; watts are fitted to "
            "such runs, {} off on those left out.",
            (percent(error), percent(power_error)),
        )
    if provenance.profile_kind == "datasheet":
        return Caveat(
            "The profile is a datasheet's, not calibrated: step times 10-30 % off are usual, since measured "
            "devices reach about 0.77-0.88 of their datasheet's bandwidth and 0.66-0.68 of its arithmetic "
            "(fits to published layer timings of A100, A40 and H100) and launch overhead is left to a prior. "
            "What both arms share cancels in a speed-up; the cost of extra positions and of draft steps does "
            "not."
        )
    fitted = "The profile is fitted to measured runs: "
    if error is None:
        return Caveat(f"{fitted}its error on measurements that it was not fitted to is not known.")
    on_others = "on measurements that it was not fitted to its step times are {} off on average"
    if power_error is None:
        return Caveat(f"{fitted}{on_others}.", (percent(error),))
    return Caveat(f"{fitted}{on_others}, its watts {{}}.", (percent(error), percent(power_error)))


def limitations(
    provenance: Provenance,
    *,
    num_prompts: int,
    num_requests: int,
    num_censored: int,
    is_energy_shown: bool,
    guessed_fraction: float,
    is_cost_known: bool,
) -> list[Caveat]:
    """List what the result does not cover, the gravest first."""
    found = (
        (provenance.lossy, _lossy(provenance)),
        (
            provenance.approximate,
            Caveat(
                "Replay is approximate here: the lookahead policy reads the draft past a rejection, which "
                "the trace does not hold."
            ),
        ),
        (
            provenance.acceptance_is_assumed,
            Caveat(
                "Acceptance follows assumed rates, the same for all prompts of a class: the intervals leave "
                "out how texts differ. A trace of the pair tells."
            ),
        ),
        (
            provenance.stand_in is not None,
            Caveat(
                "Acceptance was not recorded on this pair of models but on {}.", (str(provenance.stand_in),)
            ),
        ),
        (
            provenance.power_is_estimated,
            _guessed_joules(provenance, guessed_fraction, is_energy_shown=is_energy_shown),
        ),
        (
            provenance.device_energy_is_estimated and is_energy_shown,
            Caveat("The floor of the chips' energy rests on estimated joules per byte and operation."),
        ),
        (
            not provenance.power_is_estimated and not is_energy_shown,
            Caveat("There are no joules: the profile states no power."),
        ),
        (
            provenance.price_is_estimated and is_cost_known,
            Caveat("Dollars rest on an estimated price; give your own in cost.usd_per_hour."),
        ),
        (
            provenance.price is not None and not is_cost_known,
            Caveat(
                "There is no cost of a token: the price of a device or the joules to be paid are not known."
            ),
        ),
        (
            num_prompts == 1,
            Caveat(
                "All requests come from one prompt: there is no interval, and no telling how other prompts "
                "fare.",
                is_of_prompts=True,
            ),
        ),
        (
            1 < num_prompts < _FEW_PROMPTS,
            Caveat(
                "Only {} prompts: intervals from so few are rough and tend to be too narrow.",
                (str(num_prompts),),
                is_of_prompts=True,
            ),
        ),
        (
            num_requests > num_prompts > 1,
            Caveat(
                "{} requests come from {} prompts; repeats of a prompt count as one in the intervals.",
                (str(num_requests), str(num_prompts)),
                is_of_prompts=True,
            ),
        ),
        (
            num_requests < 100,
            Caveat("A p99 of {} requests is close to the largest value.", (str(num_requests),)),
        ),
        (
            num_censored > 0,
            Caveat(
                "Rounds in which a recording ends, not counted in the acceptance: {}.", (str(num_censored),)
            ),
        ),
    )
    return [caveat for holds, caveat in found if holds] + [Caveat(note) for note in provenance.notes]


def _guessed_joules(provenance: Provenance, guessed_fraction: float, *, is_energy_shown: bool) -> Caveat:
    """Say what guessed watts do to the joules, given the larger share of them that they contribute."""
    figures = ", ".join(provenance.guessed_watts)
    share = f"{100.0 * guessed_fraction:.0f} %"
    if not is_energy_shown:
        return Caveat(
            "Joules are withheld: {} of them come from guessed watts ({}), more than half; "
            "show_estimated_energy shows them.",
            (share, figures),
        )
    if not is_shown(guessed_fraction):
        return Caveat(
            "Joules rest on estimated watts ({} from {}): read them as orders of magnitude.",
            (share, figures),
        )
    least, most = (f"{100.0 * (factor - 1.0):+.0f} %" for factor in bounds(guessed_fraction))
    return Caveat(
        "At most {} of the joules come from guessed watts ({}): with these at half or twice what was "
        "guessed, joules change by {} to {}.",
        (share, figures, least, most),
    )


def _lossy(provenance: Provenance) -> Caveat:
    words = "The verification rule is lossy: the output does not follow the target's distribution; "
    if provenance.total_variation is None:
        return Caveat(f"{words}{loss(provenance)}.")
    return Caveat(f"{words}{_DISTANCE}.", (f"{provenance.total_variation:.3f}",))


def loss(provenance: Provenance) -> str:
    """Say how far the output of a lossy rule is from the target's law."""
    if provenance.total_variation is None:
        return "how far from the target was not measured"
    return _DISTANCE.format(f"{provenance.total_variation:.3f}")


def percent(fraction: float) -> str:
    """Return a fraction in percent, two digits."""
    return f"{100.0 * fraction:.2g} %"
