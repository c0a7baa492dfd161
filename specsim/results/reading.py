"""How wide to read a result, and what it does not cover."""

from __future__ import annotations

from specsim.results.provenance import Provenance

_FEW_PROMPTS = 10


def how_to_read(provenance: Provenance) -> str:
    """Say how wide to read the result, given what its profile and its prices rest on."""
    price = (
        "" if provenance.price is None else f" Dollars are for the whole time of a run: {provenance.price}."
    )
    return f"{_accuracy(provenance)}{price}"


def _accuracy(provenance: Provenance) -> str:
    if provenance.profile_kind == "unit":
        return (
            "The intervals cover the choice of prompts only. Costs count target steps (closed form): the "
            "result holds where a target step takes the same time whatever it verifies."
        )
    error, power_error = provenance.held_out_error, provenance.held_out_power_error
    if provenance.profile_kind == "datasheet" and error is not None and power_error is not None:
        return (
            "The intervals cover the choice of prompts only. Step times are a datasheet profile's, "
            f"{percent(error)} off on average on measured runs; watts are fitted to such runs, "
            f"{percent(power_error)} off on those left out."
        )
    if provenance.profile_kind == "datasheet":
        return (
            "The intervals cover the choice of prompts only. The profile is a datasheet's, not calibrated: "
            "step times 10-30 % off are usual, since measured devices reach about 0.77-0.88 of their "
            "datasheet's bandwidth and 0.66-0.68 of its arithmetic (fits to published layer timings of A100, "
            "A40 and H100) and launch overhead is left to a prior. What both arms share cancels in a "
            "speed-up; the cost of extra positions and of draft steps does not."
        )
    spread = (
        "its error on measurements that it was not fitted to is not known"
        if error is None
        else f"on measurements that it was not fitted to its step times are {percent(error)} off on average"
    )
    return (
        f"The intervals cover the choice of prompts only. The profile is fitted to measured runs: {spread}."
    )


def known_limitations(
    provenance: Provenance,
    *,
    num_prompts: int,
    num_requests: int,
    num_censored: int,
    is_energy_shown: bool,
    is_cost_known: bool,
) -> list[str]:
    """List what the result does not cover, one sentence each, the gravest first."""
    found = (
        (
            provenance.lossy,
            "The verification rule is lossy: the output does not follow the target's distribution; "
            f"{loss(provenance)}.",
        ),
        (
            provenance.approximate,
            "Replay is approximate here: the lookahead policy reads the draft past a rejection, which the "
            "trace does not hold.",
        ),
        (
            provenance.acceptance_is_assumed,
            "Acceptance follows assumed rates, the same for all prompts of a class: the intervals leave out "
            "how texts differ. A trace of the pair tells.",
        ),
        (
            provenance.stand_in is not None,
            f"Acceptance was not recorded on this pair of models but on {provenance.stand_in}.",
        ),
        (
            provenance.power_is_estimated and not is_energy_shown,
            "Joules are withheld: the power figures of the profile are estimated.",
        ),
        (
            provenance.power_is_estimated and is_energy_shown,
            "Joules rest on estimated watts: read them as orders of magnitude.",
        ),
        (
            provenance.device_energy_is_estimated and is_energy_shown,
            "The floor of the chips' energy rests on estimated joules per byte and operation.",
        ),
        (
            not provenance.power_is_estimated and not is_energy_shown,
            "There are no joules: the profile states no power.",
        ),
        (
            provenance.price_is_estimated and is_cost_known,
            "Dollars rest on an estimated price; give your own in cost.usd_per_hour.",
        ),
        (
            provenance.price is not None and not is_cost_known,
            "There is no cost of a token: the price of a device or the joules to be paid are not known.",
        ),
        (
            num_prompts == 1,
            "All requests come from one prompt: there is no interval, and no telling how other prompts fare.",
        ),
        (
            1 < num_prompts < _FEW_PROMPTS,
            f"Only {num_prompts} prompts: intervals from so few are rough and tend to be too narrow.",
        ),
        (
            num_requests > num_prompts > 1,
            f"{num_requests} requests come from {num_prompts} prompts; repeats of a prompt count as one in "
            "the intervals.",
        ),
        (
            num_requests < 100,
            f"A p99 of {num_requests} requests is close to the largest value.",
        ),
        (
            num_censored > 0,
            f"Rounds in which a recording ends, not counted in the acceptance: {num_censored}.",
        ),
    )
    return [sentence for holds, sentence in found if holds] + list(provenance.notes)


def guessed_watts(provenance: Provenance) -> str:
    """Say which watts are a guess, with the verb."""
    are_called_fitted = provenance.profile_kind == "datasheet" and provenance.held_out_power_error is not None
    return "a part of the watts is" if are_called_fitted else "watts are"


def loss(provenance: Provenance) -> str:
    """Say how far the output of a lossy rule is from the target's law."""
    if provenance.total_variation is None:
        return "how far from the target was not measured"
    return f"total variation of the next token from the target {provenance.total_variation:.3f}"


def percent(fraction: float) -> str:
    """Return a fraction in percent, two digits."""
    return f"{100.0 * fraction:.2g} %"
