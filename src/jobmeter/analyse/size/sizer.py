"""Size one resource of one job, by the model and the margin that would have cost least on its past runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import exp, log, sqrt
from typing import NamedTuple

from jobmeter.analyse.size.advice import Law
from jobmeter.analyse.size.choice import (
    FINE,
    Margin,
    Price,
    Residual,
    choose_margin,
    choose_retry,
    failing_above,
    upper_spread,
)
from jobmeter.analyse.size.models import OF_FEATURE, WITHOUT_FEATURE, Line, Median, Model, Power, Recent
from jobmeter.analyse.size.need import NO_FEATURES, Features, Need
from jobmeter.analyse.size.pool import Pool, Terms
from jobmeter.analyse.size.shares import Share

MOST_RUNS = 512
"""The models of a job know at most this many of its newest runs."""
MOST_RESIDUALS = 128
"""Models and margins are judged by at most this many of the newest runs."""
MOST_FEATURES = 4
LEAST_FITTED = 4
"""Runs from which on a feature can explain their needs."""
MOST_TOLD = 50
_FROM_ALL_OTHERS = (2, 4, 8, 16, 32, 64)
"""At these numbers of runs, each run is predicted again from all others: a first prediction by two runs says little."""
SINGLE = 1.25
"""Factor on the need of the only run."""
MOST_TIMES = 2.0
"""Upper bound of a request, as a factor on the largest need: a spread of few runs says little. It is higher if a
feature is larger than in any run."""
LUCK = 0.5
"""A model is preferred to the median if it costs less by the share `LUCK` over the number of runs: on few runs, the
best of several models is the best partly by luck."""
CLEAR = 0.01
"""A share that is added to that, for any number of runs."""
ORDER = 0.03
"""A share that is added to that for the model that depends on the order of runs: runs of one batch have an order, too,
without a meaning."""
ALMOST = 1.2
"""If a feature is larger than in any run, a model counts, too, whose cost is up to this factor above the least."""
_USUAL_SPREADS = 4.0
"""Factor on the spread of other jobs, by which a need may lie above all observed needs."""
_MOST_CHOSEN = 2
"""After up to this many attempts, a retry is chosen by its cost; later requests are doubled."""
_LEAST_STEP = 0.02
_TAIL_SPREADS = 4.0
"""Factor on the spread, by which needs above all observed needs exceed an amount, as a power of e."""
_LEAST_GROWTH, _MOST_GROWTH = 1.05, 4.0
_ABOVE_LARGEST = 1.02
JUMP = 4.0
"""A retry requests a little above the largest need, if that is at most this many times what was not enough."""
_LEAST_FOR_LAW = 5
_CLEARLY = 0.7
_NO_FEATURE = "no feature"


class Past(NamedTuple):
    """How the model and margin of an advice would have done on the newest runs, each predicted without itself."""

    runs: int
    failed: int
    waste: float  # of the runs that would not have failed: the mean unused amount, as a share of the need


class Size(NamedTuple):
    """How much to request of one resource."""

    amount: float
    model: str  # "" when it is a guess
    feature: str | None
    runs: int
    failing: float | None  # the expected share of failures; None: not known
    past: Past | None = None


class _Judged:
    """A model, and its residuals."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.is_fitted = not isinstance(model, Median)
        self.runs = 0
        self.residuals: list[Residual] = []
        self._margin: tuple[Price, Margin] | None = None

    def judge(self, predicted: float, need: Need, logarithm_of_need: float) -> None:
        held = exp(predicted) * need.seconds
        self.residuals.append(Residual(logarithm_of_need - predicted, held, need.amount * need.seconds))
        del self.residuals[:-MOST_RESIDUALS]
        self._margin = None

    @property
    def handicap(self) -> float:
        """The factor on its cost when models are compared."""
        if not self.is_fitted:
            return 1.0
        return 1 + CLEAR + LUCK / self.runs + (ORDER if isinstance(self.model, Recent) else 0.0)

    def past(self, distance: float) -> Past:
        """How the model would have done on the newest runs with this margin."""
        newest = self.residuals[-MOST_TOLD:]
        factor = exp(distance)
        over = [factor * one.held / one.used - 1 for one in newest if one.distance <= distance]
        return Past(len(newest), len(newest) - len(over), sum(over) / len(over) if over else 0.0)

    def margin(self, price: Price) -> Margin:
        if self._margin is None or self._margin[0] != price:
            self._margin = price, choose_margin(self.residuals, price)
        return self._margin[1]


class Sizer:
    """The past of one resource of one job, learned one run at a time.

    The pool counts its runs, unless they are those of another sizer that the pool counts (`is_counted`).
    """

    def __init__(self, pool: Pool | None = None, *, is_counted: bool = True) -> None:
        self.pool = pool if pool is not None else Pool()
        self._is_counted = is_counted
        if is_counted:
            self.pool.join(self)
        self.learned = 0  # runs, with those that the models have forgotten
        self.used = 0.0  # by these runs: amount times seconds
        self.largest = 0.0
        self.smallest = float("inf")
        self.share: Share | None = None
        self._spread: float | None = None
        self._largest_values: dict[str, float] = {}
        self._needs: list[tuple[Need, float]] = []
        self._judged = {_NO_FEATURE: [_Judged(model()) for model in WITHOUT_FEATURE]}

    @property
    def runs(self) -> int:
        return len(self._needs)

    @property
    def spread(self) -> float:
        """How far needs lie above the predictions of the model that fits best. There must be two runs or more."""
        if self._spread is None:
            judged = (each for models in self._judged.values() for each in models)
            self._spread = min(
                upper_spread(sorted((one.distance for one in each.residuals), reverse=True))
                for each in judged
                if each.residuals
            )
        return self._spread

    def learn(self, needs: Iterable[Need]) -> None:
        """Learn runs of the past, oldest first."""
        newest = list(needs)[-MOST_RUNS:]
        start = max((count for count in _FROM_ALL_OTHERS if count <= len(newest)), default=0)
        for need in newest[:start]:
            self._add(need)
        if start:
            self._predict_each_from_all_others()
        for need in newest[start:]:
            self.update(need)

    def update(self, need: Need) -> None:
        """Learn one more run."""
        logarithm_of_need = log(need.amount)
        for judged in self._models(need.features):
            if judged.runs:
                predicted = judged.model.predict(_value(judged, need.features))
                judged.judge(predicted, need, logarithm_of_need)
        self._add(need)
        if len(self._needs) in _FROM_ALL_OTHERS:
            self._predict_each_from_all_others()

    def predict(self, features: Features = NO_FEATURES, terms: Terms = Terms()) -> Size | None:  # noqa: B008
        """What a run with these features shall request; None if no run is known."""
        if not self._needs:
            return None
        if len(self._needs) == 1:
            return Size(self.largest * SINGLE + terms.plus, "", None, 1, None)
        price = self.pool.price(terms)
        best, margin = self._best(features, price)
        predicted = best.model.predict(_value(best, features))
        beyond, least = log(MOST_TIMES * self._beyond(features)), 0.0
        if best.model.feature is None:
            beyond, least = min(beyond, terms.strictness * self._most_beyond(price)), self.smallest
        distance, failing = margin.distance, margin.failing
        if (most := log(self.largest) + beyond - predicted) < distance:
            distance, failing = most, failing_above(best.residuals, margin.spread, most)
        return Size(
            max(exp(predicted + distance), least) + terms.plus,
            best.model.name,
            best.model.feature,
            len(self._needs),
            failing + 0.5 / FINE / len(best.residuals),  # less than half a point cannot be distinguished from 0
            best.past(distance),
        )

    def _most_beyond(self, price: Price) -> float:
        """How far needs may lie above the largest, as a logarithm: further if they vary more or runs are fewer."""
        return log(self.largest / self.smallest) / sqrt(len(self._needs)) + _USUAL_SPREADS * price.usual_spread

    def _best(self, features: Features, price: Price) -> tuple[_Judged, Margin]:
        """The model of least cost; if a feature is larger than in any run, the one of two models that predicts more.

        The past says little about such a run. So the best model with the feature and the best without it are compared,
        if their costs are close.
        """
        candidates = self._candidates(features, price)
        best, margin = _least_cost(candidates, price)
        for name, value in features.items():
            if name not in self._judged or value <= self._largest_values.get(name, value):
                continue
            others = [each for each in candidates if (each.model.feature == name) != (best.model.feature == name)]
            if not _usable(others):
                continue
            other, other_margin = _least_cost(others, price)
            if other_margin.cost <= ALMOST * margin.cost:
                more = other.model.predict(_value(other, features)) + other_margin.distance
                if more > best.model.predict(_value(best, features)) + margin.distance:
                    best, margin = other, other_margin
        return best, margin

    def knows(self, feature: str) -> bool:
        """Whether there are models of this feature."""
        return feature in self._judged

    def known(self, features: Features) -> Features:
        """Those of these features that there are models of."""
        return {name: value for name, value in features.items() if name in self._judged}

    def is_beyond(self, features: Features) -> bool:
        """Whether a feature is larger than in any run."""
        return self._beyond(features) > 1

    def _beyond(self, features: Features) -> float:
        """How many times larger a feature is than in any run; 1 if none is larger."""
        ratios = (value / most for name, value in features.items() if (most := self._largest_values.get(name, 0.0)) > 0)
        return max((1.0, *ratios))

    def law(self, terms: Terms = Terms()) -> Law | None:  # noqa: B008
        """The formula of the feature with which requests cost clearly less than without any; None if there is none."""
        price = self.pool.price(terms)
        without = [judged for judged in self._judged[_NO_FEATURE] if judged.residuals]
        formulas = [
            judged
            for models in self._judged.values()
            for judged in models
            if isinstance(judged.model, (Line, Power)) and len(judged.residuals) >= _LEAST_FOR_LAW
        ]
        if not without or not formulas:
            return None
        best = min(formulas, key=lambda judged: judged.margin(price).cost)
        margin = best.margin(price)
        if margin.cost - 1 > _CLEARLY * (min(judged.margin(price).cost for judged in without) - 1):
            return None
        assert isinstance(best.model, (Line, Power))
        return best.model.law(exp(margin.distance), terms.plus)

    def retry(self, amount: float, features: Features, terms: Terms, attempt: int) -> float:
        """What to request after an amount that was not enough in this attempt, counted from 1."""
        if attempt > _MOST_CHOSEN or len(self._needs) < 2:
            return 2 * amount
        price = self.pool.price(terms)
        best, margin = self._best(features, price)
        predicted = best.model.predict(_value(best, features))
        own = sum(one.used for one in best.residuals) / len(best.residuals)
        above = log(max(amount - terms.plus, amount / 2)) - predicted + _LEAST_STEP
        distance = choose_retry(best.residuals, price, margin.spread, above)
        if distance is not None:
            chosen = min(exp(predicted + distance), MOST_TIMES * max(amount, self.largest)) + terms.plus
            return max(chosen, amount * _growth(margin.spread, price.failure / own))
        if amount < _ABOVE_LARGEST * self.largest <= JUMP * amount:
            return _ABOVE_LARGEST * self.largest
        return amount * max(_growth(margin.spread, 1 + price.failure / own), _LEAST_GROWTH)

    def _candidates(self, features: Features, price: Price) -> list[_Judged]:
        """The models to choose from.

        Only the median, if a feature that is not given explains the needs: the last runs then say little.
        """
        models = self._models(features)
        if not features and len(self._judged) > 1:
            every = [each for group in self._judged.values() for each in group]
            if _least_cost(every, price)[0].model.feature is not None:
                return [each for each in models if not each.is_fitted]
        return models

    def expected_failures(self, terms: Terms, names: Collection[str] | None) -> float:
        """The share of runs expected to fail if the features in `names` are known; None: all.

        There must be two runs or more.
        """
        price = self.pool.price(terms)
        usable = dict.fromkeys((name for name in self._judged if names is None or name in names), 0.0)
        usable.pop(_NO_FEATURE, None)
        return _least_cost(self._candidates(usable, price), price)[1].failing

    def _models(self, features: Features) -> list[_Judged]:
        """The models that can predict a run with these features."""
        judged = list(self._judged[_NO_FEATURE])
        for name in features:
            if name in self._judged:
                judged += self._judged[name]
        return judged

    def _add(self, need: Need) -> None:
        if len(self._needs) >= MOST_RUNS:
            self._forget_oldest()
        for name in need.features:
            if name not in self._judged and len(self._judged) <= MOST_FEATURES:
                self._judged[name] = [_Judged(model(name)) for model in OF_FEATURE]
        logarithm_of_need = log(need.amount)
        self._needs.append((need, logarithm_of_need))
        for judged in self._models(need.features):
            judged.model.learn(_value(judged, need.features), logarithm_of_need)
            judged.runs += 1
        for name, value in need.features.items():
            self._largest_values[name] = max(self._largest_values.get(name, value), value)
        self.largest = max(self.largest, need.amount)
        self.smallest = min(self.smallest, need.amount)
        if need.requested:
            last = self.share or Share(0.0, 0.0)
            cost = last.requested_cost + (need.requested * need.seconds - last.requested_cost) / len(self._needs)
            self.share = Share(max(last.needed, need.amount / need.requested), cost)
        self._spread = None
        self.learned += 1
        self.used += need.amount * need.seconds
        if self._is_counted:
            self.pool.add(need)

    def _forget_oldest(self) -> None:
        need, logarithm_of_need = self._needs.pop(0)
        for judged in self._models(need.features):
            judged.model.forget(_value(judged, need.features), logarithm_of_need)
            judged.runs -= 1

    def _predict_each_from_all_others(self) -> None:
        logarithms = [each for _, each in self._needs]
        for models in self._judged.values():
            for judged in models:
                judged.residuals.clear()
        for index, (need, logarithm_of_need) in enumerate(self._needs):
            for judged in self._models(need.features):
                if judged.runs < 2:
                    continue
                if isinstance(judged.model, Recent):
                    predicted = Recent.without(logarithms, index)
                else:
                    value = _value(judged, need.features)
                    judged.model.forget(value, logarithm_of_need)
                    predicted = judged.model.predict(value)
                    judged.model.learn(value, logarithm_of_need)
                judged.judge(predicted, need, logarithm_of_need)


def _growth(spread: float, failure: float) -> float:
    """The factor of least cost on an amount that was not enough, if needs above it are rarer by a power law (Pareto).

    `failure` is the price of a failure, in average runs of the job.
    """
    power = 1 / (_TAIL_SPREADS * spread)
    growth: float = (power * failure) ** (1 / (power + 1))
    return min(growth, _MOST_GROWTH)


def _least_cost(judged: Iterable[_Judged], price: Price) -> tuple[_Judged, Margin]:
    margins = ((each, each.margin(price)) for each in _usable(judged))
    return min(margins, key=lambda each: each[1].cost * each[0].handicap)


def _usable(judged: Iterable[_Judged]) -> list[_Judged]:
    return [each for each in judged if each.residuals and (each.model.feature is None or each.runs >= LEAST_FITTED)]


def _value(judged: _Judged, features: Features) -> float:
    feature = judged.model.feature
    return 0.0 if feature is None else features[feature]
