"""The ridge state passes the contract of models, and models that are broken in one way each do not."""

import numpy as np
import pytest

from armful import RidgeState
from armful.testing import ModelContract


class TestRidgeState(ModelContract):
    def model(self, n_features, batch):
        return RidgeState(n_features=n_features, ridge=0.5, batch=batch)


class TestARidgeStateOfManyFeatures(TestRidgeState):
    n_features = 60


class ForgetsWeights(RidgeState):
    def learn(self, X, rewards, *, weights=None, shock=0.0):
        return super().learn(X, rewards)


class KeepsTheLastPart(RidgeState):
    def learn(self, X, rewards, *, weights=None, shock=0.0):
        return RidgeState.learn(self.empty(), X, rewards, weights=weights)


class MergesTheLargerOnly(RidgeState):
    def __add__(self, other):
        self.refuse_unlike(other)
        return self if np.sum(self.n) >= np.sum(other.n) else other


class MergesAnything(RidgeState):
    def overlaps(self, other):
        return False


class DiscountsTheRidgeToo(RidgeState):
    def discount(self, factor):
        return super().discount(factor**2)


class SamplesTooNarrowly(RidgeState):
    def sample(self, standard_normals):
        return self.theta + 0.9 * (super().sample(standard_normals) - self.theta)


class SamplesBesideTheMean(RidgeState):
    def sample(self, standard_normals):
        return super().sample(standard_normals) + 0.02


class SamplesByTheOrderOfLearning(RidgeState):
    def sample(self, standard_normals):
        return self.theta + (self.inverse_root @ standard_normals[..., None])[..., 0]


class MixesTheLearnersOfABatch(RidgeState):
    def __getitem__(self, index):
        return super().__getitem__(0)


class LosesANumberInItsFile(RidgeState):
    def to_arrays(self):
        arrays = super().to_arrays()
        return {**arrays, "n": np.asarray(0.9 * arrays["n"])}


class LearnsWhatIsNotFinite(RidgeState):
    def learn(self, X, rewards, **options):
        return super().learn(np.nan_to_num(X), np.nan_to_num(rewards), **options)


class WidensByRow(RidgeState):
    def mean_and_width(self, X, *, some_of_many=False):
        mean, width = super().mean_and_width(X, some_of_many=some_of_many)
        return mean, width * (1 + 1e-15 * np.arange(width.shape[-1]))


@pytest.mark.parametrize(
    ("kind", "caught_by"),
    [
        (ForgetsWeights, "test_a_weight_counts_as_so_many_observations"),
        (KeepsTheLastPart, "test_learning_in_parts_in_any_order_is_learning_at_once"),
        (MergesTheLargerOnly, "test_shards_merged_are_everything_learned_at_once"),
        (MergesAnything, "test_merging_the_same_observations_twice_is_refused"),
        (DiscountsTheRidgeToo, "test_discounting_is_learning_with_smaller_weights"),
        (SamplesTooNarrowly, "test_samples_have_the_mean_and_width_of_the_model"),
        (SamplesBesideTheMean, "test_samples_have_the_mean_and_width_of_the_model"),
        (SamplesByTheOrderOfLearning, "test_samples_are_the_same_however_the_model_was_learned"),
        (MixesTheLearnersOfABatch, "test_a_batch_is_its_learners_one_by_one"),
        (LosesANumberInItsFile, "test_what_is_saved_and_loaded_goes_on_to_the_last_bit"),
        (LearnsWhatIsNotFinite, "test_bad_input_is_refused_and_the_model_stays_as_it_was"),
        (WidensByRow, "test_equal_rows_get_equal_bits_also_as_some_of_many"),
    ],
)
def test_a_broken_model_is_caught(kind, caught_by):
    class Suite(ModelContract):
        def model(self, n_features, batch):
            return kind(n_features=n_features, ridge=0.5, batch=batch)

    with pytest.raises(AssertionError):
        getattr(Suite(), caught_by)()


def test_a_model_must_be_supplied():
    with pytest.raises(NotImplementedError, match=r"^ModelContract must define model\(self, n_features, batch\)$"):
        ModelContract().test_an_empty_model_knows_nothing()
