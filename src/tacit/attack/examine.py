"""The examiner: holds the truth, runs every attack's main, baseline and control arms, and counts.

An attack never learns whether it was right, and no attack counts its own hits: one success criterion per kind of
disclosure, written here once.

>>> from tacit.attack import Scene, examine, risk            # doctest: +SKIP
>>> outcome = examine(Linkage(), scene, rng=Rng(7))          # doctest: +SKIP
>>> risk(outcome).low <= risk(outcome).value                 # doctest: +SKIP
True
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from tacit.attack.attack import Attack, Discloses, Guesses, View
from tacit.attack.criterion import Criterion
from tacit.attack.outcome import Arm, Outcome
from tacit.attack.predicates import isolated, shuffled
from tacit.attack.scene import People, Scene, people_of
from tacit.errors import BadParameter, NotApplicable, OutOfTime
from tacit.progress import SILENT, Progress, hurry
from tacit.progress import share as share_of
from tacit.rng import Rng

__all__ = ["examine"]

Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]


def examine(attack: Attack, scene: Scene, *, rng: Rng, progress: Progress = SILENT, tries: int = 5000) -> Outcome:
    """Run an attack on at most ``tries`` people drawn at random and count how often it was right.

    What cannot be judged or attacked raises :class:`NotApplicable`: it is never a risk of zero. When ``progress`` is a
    :class:`~tacit.progress.Deadline` and time is up, those sought so far are counted; people are sought in random
    order, so they are a sample of all, and the interval is as wide as their number says. With nobody sought to the end,
    :class:`OutOfTime` is raised.
    """
    hurry(progress)
    if tries < 1:
        raise BadParameter(f"An attack needs at least one try, not {tries}.", tries=tries)
    if attack.pairwise:
        # Two thousand million comparisons take a few seconds per column; the interval says what fewer tries cost.
        tries = min(tries, max(200, 2_000_000_000 // max(1, scene.release.table.rows)))
    if attack.by_unit:
        from tacit.attack.examine_units import examine_units

        return examine_units(attack, scene, rng.child("attack", attack.part_name()), progress, tries)  # type: ignore
    run: Callable[..., Outcome]
    match attack.discloses:
        case Discloses.IDENTITY:
            run = _identity
        case Discloses.ATTRIBUTE:
            run = _attribute
        case Discloses.MEMBERSHIP:
            run = _membership
        case Discloses.SINGLING_OUT:
            run = singling_out
        case other:  # pragma: no cover - a new kind of disclosure must be given its criterion here
            raise NotImplementedError(other)
    return run(attack, scene, rng.child("attack", attack.part_name()), progress, tries)


def _sample(rng: Rng, name: str, chosen: Rows, tries: int) -> Rows:
    """At most ``tries`` of those, in random order: whoever stops early has seen a random sample."""
    return rng.child(name).generator.permutation(chosen)[:tries]


def _guess(attack: Attack, view: View, rng: Rng, progress: Progress) -> Guesses:
    """The guesses about those who were reached in time."""
    guesses = attack.guess(view, rng, progress)
    if guesses.tried == 0:
        raise OutOfTime("Stopped: time was up before anybody had been sought.", fix="Allow more time.")
    return guesses.reached


def _view(attack: Attack, scene: Scene, people: People, chosen: Rows, *, secret: str | None = None) -> View:
    return View(
        release=scene.release,
        targets=people.frame[chosen],
        knows=people.knows,
        secret=secret,
        transparent=attack.transparent,
        blanks_unknown=people.outside,
    )


def _in_release(place: Rows | None, people: People) -> Rows:
    """Numbers of the people who are in the release, so far as that is known."""
    inside = np.arange(len(people.rows)) if place is None else np.flatnonzero(place[people.rows] >= 0)
    if len(inside) == 0:
        raise NotApplicable(
            "None of the people sought is in the release.", fix="Give an outside file that overlaps with the release."
        )
    return inside


def _outcome(
    attack: Attack,
    scene: Scene,
    people: People,
    rows: Rows,
    guesses: Guesses,
    hit: Bools,
    baseline: Arm | None,
    **more: object,
) -> Outcome:
    certain = guesses.made & (guesses.confidence >= 1 - 1e-9)
    detail = dict(guesses.detail)
    order = np.argsort(rows, kind="stable")
    if people.outsiders:
        detail["outsiders"] = people.outsiders
    return Outcome(
        attack=attack.part_name(),
        discloses=attack.discloses,
        main=Arm(hits=int(hit.sum()), tries=len(hit)),
        baseline=baseline,
        claims=int(guesses.made.sum()),
        certain=int(certain.sum()),
        certain_hits=int((certain & hit).sum()),
        knows=people.knows,
        parameters={
            name: value
            for name, value in attack.to_plain().items()
            if name not in ("auxiliary", "identity", "knows", "releases")
        },
        detail=detail,
        threat=attack.summary(),
        setting=attack.setting,
        rows=rows[order],
        hit=hit[order],
        confidence=guesses.confidence[order],
        **more,  # type: ignore[arg-type]
    )


# --- identity -----------------------------------------------------------------------------------------------------


def _identity(attack: Attack, scene: Scene, rng: Rng, progress: Progress, tries: int) -> Outcome:
    place = scene.release_row
    if place is None and not scene.truthful:
        raise NotApplicable(
            "Nobody knows which row of the release is whose, so no guess of identity can be judged.",
            fix="Give the row map (`lineage`) that was written with the release, say that its rows are in the order of "
            "the original (`aligned`), or name a column that identifies rows in both (`key`).",
        )
    if scene.made_up:
        raise NotApplicable(
            "Every row of the release is made up, so none is anybody's.",
            fix="Attack a secret (`model-inference`), or membership with people who are not in the data (`control`).",
        )
    people = people_of(attack, scene)
    inside = _in_release(place, people)
    share = getattr(attack, "taught", None)
    lesson = None
    if share is not None:
        if place is None:
            raise NotApplicable(
                "Nothing can be learned without knowing whose rows some are.", fix="Give the row map (`lineage`)."
            )
        inside, lesson = _taught(scene, people, inside, share, rng, tries)
        if share >= 1:
            tries = min(tries, getattr(attack, "most", tries))
    chosen = _sample(rng, "targets", inside, tries)
    if lesson is None and share is not None and place is not None:
        lesson = (people.frame[chosen], place[people.rows[chosen]])
    view = replace(_view(attack, scene, people, chosen), taught=lesson)
    fitted = share is not None and share >= 1
    guesses = _guess(attack, view, rng.child("guess"), share_of(progress, 2 if fitted else 1))
    assert guesses.row is not None
    rows = people.rows[chosen][: len(guesses.made)]
    size = scene.release.table.rows
    baseline: Arm | None
    if place is not None:
        hit = guesses.made & (guesses.row == place[rows])
        if fitted:
            baseline = _fitted_baseline(attack, view, place[people.rows[chosen]], rng, progress)
        else:
            blind = rng.child("baseline").generator.integers(size, size=len(rows)) == place[rows]
            baseline = Arm(hits=int(blind.sum()), tries=len(rows))
    else:
        # The method only coarsens, so the true row is one of those that fit, and the pick among them was random:
        # whether it was right is a coin with the attack's own confidence.
        hit = guesses.made & (rng.child("coin").generator.random(len(rows)) < guesses.confidence)
        blind = rng.child("baseline").generator.random(len(rows)) < 1 / size
        baseline = Arm(hits=int(blind.sum()), tries=len(rows))
    how = "row map" if scene.lineage is not None else "aligned rows" if place is not None else "size of matching class"
    return _outcome(attack, scene, people, rows, guesses, hit, baseline, truth=how, planned=len(chosen))


def _fitted_baseline(attack: Attack, view: View, truth: Rows, rng: Rng, progress: Progress) -> Arm | None:
    """The same learner taught a random assignment, judged by that assignment.

    Taught from the very people it is tried on, a learner is right about some by fitting alone.
    """
    assert view.taught is not None
    invented = rng.child("baseline").generator.permutation(truth)
    try:
        pretended = replace(view, taught=(view.taught[0], invented))
        told = _guess(attack, pretended, rng.child("guess baseline"), progress).row
    except OutOfTime:
        return None
    assert told is not None
    return Arm(hits=int((told == invented[: len(told)]).sum()), tries=len(told))


def _taught(
    scene: Scene, people: People, inside: Rows, share: float, rng: Rng, tries: int
) -> tuple[Rows, tuple[pl.DataFrame, Rows] | None]:
    """Split those in the release into the people sought and people whose rows the intruder knows already."""
    if share >= 1:
        return inside, None
    place = scene.release_row
    assert place is not None
    order = rng.child("taught").generator.permutation(inside)
    count = max(1, round(share * len(inside)))
    if count >= len(inside):
        raise NotApplicable(f"Of {len(inside)} people {count} are known, so that nobody is left to be sought.")
    known = np.sort(order[:count][: max(tries, 1)])
    return np.sort(order[count:]), (people.frame[known], place[people.rows[known]])


# --- attribute ----------------------------------------------------------------------------------------------------


def secret_of(attack: Attack, scene: Scene) -> str:
    """The column whose value is sought."""
    released = scene.release.table.columns
    wanted = getattr(attack, "secret", None)
    if wanted is not None:
        scene.original.table.require([wanted])
        if wanted not in released:
            raise NotApplicable(f"The release has no column `{wanted}`, so it cannot give it away directly.")
        return str(wanted)
    sensitive = [name for name in scene.original.sensitive if name in released]
    if not sensitive:
        raise NotApplicable(
            "The release has no column declared sensitive.", fix="Name the column sought with `secret`."
        )
    if len(sensitive) > 1:
        raise NotApplicable(
            f"The release has {len(sensitive)} sensitive columns: {', '.join(sensitive)}.",
            fix="Name the one sought with `secret`.",
        )
    return sensitive[0]


def _attribute(attack: Attack, scene: Scene, rng: Rng, progress: Progress, tries: int) -> Outcome:
    secret = secret_of(attack, scene)
    people = people_of(attack, scene)
    if secret in people.knows:
        raise BadParameter(f"`{secret}` cannot be both known to the intruder and sought.", column=secret)
    truth = scene.original.table.column(secret)
    # The people whom made-up rows were modelled on are all in the release, as far as their secrets go.
    place = None if scene.made_up else scene.release_row
    usable = truth.is_not_null().to_numpy()[people.rows]
    inside = _in_release(place, people)
    inside = inside[usable[inside]]
    if len(inside) == 0:
        raise NotApplicable(f"Nobody sought has a value of `{secret}` that a guess could be compared with.")
    chosen = _sample(rng, "targets", inside, tries)
    tolerance = float(getattr(attack, "tolerance", 0.0))
    released = scene.release.table.column(secret)
    published = scene.release.manifest.get("columns", {}).get(secret, {})
    rule = Criterion(tolerance=tolerance, hierarchy=published.get("hierarchy"))
    rule.refuse_unjudgeable(released, truth)
    outside = _outside(scene, people, secret, place)
    own = share_of(progress, 1 if outside is None else 2)
    guesses = _guess(attack, _view(attack, scene, people, chosen, secret=secret), rng.child("guess"), own)
    assert guesses.value is not None
    rows = people.rows[chosen][: len(guesses.made)]
    hit = guesses.made & rule.right(guesses.value, truth.gather(rows))
    constant = best_constant(rule.telling(released), tolerance)
    blind = rule.right(pl.Series(constant).new_from_index(0, len(rows)), truth.gather(rows))
    control = None
    if outside is not None:
        frame, values = outside
        picked = _sample(rng, "control", np.arange(frame.height), tries)
        strangers = People(frame=frame, rows=np.empty(0, np.int64), knows=people.knows)
        view = _view(attack, scene, strangers, picked, secret=secret)
        # Without time for it, or when nothing of the release fits these few, the reference is the baseline alone,
        # which judges more severely.
        with suppress(NotApplicable):
            others = _guess(attack, view, rng.child("guess control"), progress)
            assert others.value is not None
            right = others.made & rule.right(others.value, values.gather(picked[: len(others.made)]))
            control = Arm(hits=int(right.sum()), tries=len(right))
    how = "row map" if scene.lineage is not None and not scene.made_up else "original values"
    return _outcome(
        attack,
        scene,
        people,
        rows,
        guesses,
        hit,
        Arm(hits=int(blind.sum()), tries=len(rows)),
        control=control,
        secret=secret,
        truth=how,
        planned=len(chosen),
    )


def _outside(
    scene: Scene, people: People, secret: str | None, place: Rows | None
) -> tuple[pl.DataFrame, pl.Series] | None:
    """People who are not in the release, with the value sought: a control file, or the rows that were left out."""
    if scene.control is not None:
        needed = [*people.knows, *([secret] if secret else [])]
        scene.control.require(needed)
        frame = scene.control.frame
    elif place is not None:
        frame = scene.original.table.frame.filter(pl.Series(place < 0))
    else:
        return None
    if secret is not None:
        frame = frame.filter(pl.col(secret).is_not_null())
    if frame.height == 0:
        return None
    return frame.select(people.knows), frame.get_column(secret) if secret is not None else pl.Series([])


def best_constant(values: pl.Series, tolerance: float) -> pl.Series:
    """The one value that is right most often: what an intruder says who does not link at all."""
    present = values.drop_nulls()
    if len(present) == 0:
        return values.head(1)
    counts = present.alias("value").value_counts(sort=True)
    if tolerance > 0 and values.dtype.is_numeric():
        distinct = counts.sort("value")
        level = distinct["value"].cast(pl.Float64).to_numpy()
        total = np.concatenate([[0], np.cumsum(distinct["count"].to_numpy())])
        ordered = np.sort(level)
        # A guess g is right for every truth t with |g - t| <= tolerance |t|; only the window on the positive side is
        # searched, which is exact for columns of one sign and a good constant otherwise.
        low = np.searchsorted(ordered, np.minimum(level / (1 + tolerance), level * (1 + tolerance)), "left")
        high = np.searchsorted(ordered, np.maximum(level / (1 - min(tolerance, 0.99)), level), "right")
        return distinct["value"][[int(np.argmax(total[high] - total[low]))]].alias(values.name)
    # Ties are broken by the value itself so that the same release gives the same baseline.
    top = counts.filter(pl.col("count") == pl.col("count").max())
    return top.sort("value")["value"].head(1).alias(values.name)


# --- membership ---------------------------------------------------------------------------------------------------


def _membership(attack: Attack, scene: Scene, rng: Rng, progress: Progress, tries: int) -> Outcome:
    """Members must be recognized and others not: half of the targets are in the release, half are not."""
    people = people_of(attack, scene)
    place = None if scene.made_up else scene.release_row
    members = np.arange(len(people.rows)) if place is None else np.flatnonzero(place[people.rows] >= 0)
    outside = _outside(scene, people, None, place)
    if outside is None or len(members) == 0:
        raise NotApplicable(
            "Membership can only be judged with people who are not in the release beside people who are.",
            fix="Give a file of held-out people (`control`), or release a sample.",
        )
    frame = outside[0]
    count = min(len(members), frame.height, max(1, tries // 2))
    inside = _sample(rng, "targets", members, count)
    absent = _sample(rng, "control", np.arange(frame.height), count)
    targets = pl.concat([people.frame[inside], frame[absent].cast(people.frame.schema, strict=False)])
    shuffle = rng.child("shuffle").generator.permutation(targets.height)
    view = View(release=scene.release, targets=targets[shuffle], knows=people.knows, transparent=attack.transparent)
    guesses = _guess(attack, view, rng.child("guess"), progress)
    assert guesses.member is not None
    shuffle = shuffle[: len(guesses.made)]
    member = shuffle < count
    hit = guesses.made & (guesses.member == member)
    # Without the release the intruder can only say "member" as often, of people at random.
    blind = rng.child("baseline").generator.permutation(guesses.member) == member
    rows = np.where(member, people.rows[inside][np.minimum(shuffle, count - 1)], -1)
    said = float(guesses.member[member].mean()) if member.any() else 0.0
    false = float(guesses.member[~member].mean()) if not member.all() else 0.0
    return _outcome(
        attack,
        scene,
        people,
        rows,
        Guesses(
            member=guesses.member,
            made=guesses.made,
            confidence=guesses.confidence,
            detail={**guesses.detail, "members recognized": said, "others taken for members": false},
        ),
        hit,
        Arm(hits=int(blind.sum()), tries=len(hit)),
        truth="control file" if scene.control is not None else "row map",
        planned=targets.height,
    )


# --- singling out -------------------------------------------------------------------------------------------------


def singling_out(attack: Attack, scene: Scene, rng: Rng, progress: Progress, tries: int) -> Outcome:
    """A description hits when exactly one person of the original fits it, whoever made the release."""
    people = people_of(attack, scene)
    original = scene.original.table.frame
    nobody = View(
        release=scene.release, targets=people.frame.clear(), knows=people.knows, transparent=attack.transparent
    )
    guesses = attack.guess(nobody, rng.child("guess"), share_of(progress, 2))
    made = guesses.predicates[:tries]
    if not made:
        raise NotApplicable("No description was found that fits exactly one released row.")
    hit = isolated(made, original, scene.release.table)
    # Without knowing which values go together: the same attack on a release whose columns were shuffled one by one.
    apart = replace(nobody, release=shuffled(scene.release, people.knows, rng.child("baseline").generator))
    baseline = None
    with suppress(OutOfTime):
        loose = attack.guess(apart, rng.child("guess baseline"), progress).predicates[:tries]
        blind = isolated(loose, original, apart.release.table) if loose else np.zeros(len(made), dtype=np.bool_)
        baseline = Arm(hits=int(blind.sum()), tries=len(blind))
    control = None
    if scene.control is not None:
        scene.control.require(people.knows)
        outside = isolated(made, scene.control.frame, scene.release.table)
        control = Arm(hits=int(outside.sum()), tries=len(outside))
    judged = Guesses(
        made=np.ones(len(made), dtype=np.bool_), confidence=guesses.confidence[: len(made)], detail=guesses.detail
    )
    rows = np.full(len(made), -1, dtype=np.int64)
    planned = min(tries, getattr(attack, "descriptions", tries)) if guesses.tried is not None else len(made)
    return _outcome(
        attack, scene, people, rows, judged, hit, baseline, control=control, truth="original values", planned=planned
    )
