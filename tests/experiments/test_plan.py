import shutil
from dataclasses import replace

import pytest

from armful import checks
from armful.experiments import Plan, Recipe, read_plan, recipe
from armful.experiments._comparison import check
from armful.experiments._example import EXAMPLE
from armful.experiments.running import run_cell

TINY = Plan(
    policies={"greedy": Recipe("EpsilonGreedy", {"epsilon": 0.0}), "C2UCB": Recipe("C2UCB", {"ridge": "d"})},
    environments={"slates": Recipe("Slates", {"n_arms": 12, "n_features": 4})},
    sizes=[(2, 5), (3, 8)],
    runs=3,
)


def test_a_plan_has_a_cell_for_every_policy_environment_and_size():
    cells = TINY.cells()
    assert {(c.policy, c.environment, c.k, c.rounds) for c in cells} == {
        (policy, "slates", k, rounds) for policy in ("greedy", "C2UCB") for k, rounds in ((2, 5), (3, 8))
    }
    assert len(cells) == 4


def test_options_relative_to_the_number_of_features_are_worked_out():
    policy = Recipe("C2UCB", {"ridge": "d", "radius": "sqrt(d)"}).make(n_features=9)
    assert (policy.ridge, policy.radius) == (9.0, 3.0)


@pytest.mark.parametrize(
    "change", [{"k": 9}, {"rounds": 9}, {"runs": 9}, {"seed": 9}, {"policy_recipe": Recipe("C2UCB", {"ridge": 2.0})}]
)
def test_a_result_is_kept_under_another_key_when_it_could_differ(change):
    cell = TINY.cells()[0]
    assert replace(cell, **change).key() != cell.key()


def test_editing_the_file_of_an_own_class_changes_the_key(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("from armful import C2UCB\nclass Mine(C2UCB):\n    pass\n")
    cell = replace(TINY.cells()[0], policy_recipe=Recipe(f"{file}:Mine"))
    before = cell.key()
    file.write_text(file.read_text() + "# changed\n")
    assert cell.key() != before


def test_editing_armful_changes_every_key(tmp_path, monkeypatch):
    shutil.copytree(recipe.PACKAGE, tmp_path / "armful", ignore=shutil.ignore_patterns("__pycache__"))
    source_digest = recipe.source_digest.__wrapped__
    assert source_digest(tmp_path / "armful") == recipe.source_digest()
    ridge = tmp_path / "armful" / "model" / "ridge.py"
    ridge.write_bytes(ridge.read_bytes().replace(b"\n", b"\r\n"))  # as git may write it on Windows
    (tmp_path / "armful" / "experiments" / "_page.py").write_text("# another look")
    assert source_digest(tmp_path / "armful") == recipe.source_digest()
    ridge.write_text("# another result")
    assert source_digest(tmp_path / "armful") != recipe.source_digest()
    before = TINY.cells()[0].key()
    monkeypatch.setattr("armful.experiments.plan.source_digest", lambda: "another")
    assert TINY.cells()[0].key() != before


def test_a_date_is_an_option_like_any_other(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from armful import C2UCB\n"
        "class Mine(C2UCB):\n"
        "    def __init__(self, *, since, **common):\n"
        "        super().__init__(**common)\n"
        "        self.since = since\n"
    )
    path, keys = tmp_path / "plan.toml", set()
    for since in ("2020-01-01", "2020-01-02", "'2020-01-01'", "2020-01-01T07:32:00Z", "07:32:00"):
        path.write_text(
            'sizes = [{ k = 2, rounds = 3 }]\n[policies.mine]\nclass = "mine.py:Mine"\n'
            f"since = {since}\n[environments.Slates]\n"
        )
        check(read_plan(path))
        keys |= {cell.key() for cell in read_plan(path).cells()}
    assert len(keys) == 5


def test_an_option_that_no_plan_could_hold_is_refused():
    cell = replace(TINY.cells()[0], policy_recipe=Recipe("C2UCB", {"ridge": object()}))
    with pytest.raises(ValueError, match="such as TOML can hold, got object"):
        cell.key()


def test_an_environment_without_an_option_k_is_run_once_for_each_number_of_rounds():
    plan = replace(TINY, environments={**TINY.environments, "town": Recipe("Routes")}, sizes=[(2, 5), (3, 5), (3, 8)])
    check(plan)
    assert plan.sizes_in("slates") == [(2, 5), (3, 5), (3, 8)]
    assert plan.sizes_in("town") == [(0, 5), (0, 8)]
    cells = plan.cells()
    assert [str(c) for c in cells if c.environment == "town" and c.policy == "C2UCB"] == [
        "C2UCB in town with T = 8",
        "C2UCB in town with T = 5",
    ]
    assert len({c.key() for c in cells}) == len(cells) == 2 * (3 + 2)


@pytest.mark.parametrize(("parent", "has_k"), [("Slates", True), ("Routes", False), ("object", True)])
def test_what_an_heir_takes_is_what_its_parents_take(tmp_path, parent, has_k):
    passed = "options" if parent != "object" else ""
    (tmp_path / "heirs.py").write_text(
        f"from armful.environments import Routes, Slates\n\nclass Heir({parent}):\n    n_features = 3\n"
        f"    def __init__(self, **options):\n        super().__init__({'**' * bool(passed)}{passed})\n"
        "    def rounds(self, n_rounds, rng):\n        return iter(())\n"
    )
    recipe = Recipe(f"{tmp_path / 'heirs.py'}:Heir")
    assert recipe.takes("k") == has_k
    recipe.make(k=2)


def test_the_example_plan_can_be_run(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(EXAMPLE)
    plan = read_plan(path)
    check(plan)
    assert plan.policies["paper-rule"] == Recipe(
        "CappedC2UCB", {"rule": "paper", "cap": 1.0, "ridge": "d", "radius": "sqrt(d)"}
    )
    assert plan.sizes == [(5, 50), (10, 100), (20, 200)]


def test_own_classes_are_found_in_a_file_next_to_the_plan(tmp_path):
    (tmp_path / "mine.py").write_text("from armful import C2UCB\nclass Mine(C2UCB):\n    pass\n")
    path = tmp_path / "plan.toml"
    path.write_text(
        'sizes = [{ k = 2, rounds = 3 }]\n[policies.mine]\nclass = "mine.py:Mine"\nradius = 0.5\n'
        "[environments.Slates]\n"
    )
    policy = read_plan(path).policies["mine"].make(n_features=3)
    assert type(policy).__name__ == "Mine"
    assert policy.radius == 0.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sizes = [", "is not TOML"),
        ("speed = 3", "unknown entry 'speed'"),
        ("", "needs policies"),
        ("[policies.C2UCB]", "needs environments"),
        ("[policies.C2UCB]\n[environments.Slates]", "needs sizes"),
        ("sizes = [3]\n[policies.C2UCB]\n[environments.Slates]", "each of sizes must be like"),
        ("sizes = [{ k = 0, rounds = 3 }]\n[policies.C2UCB]\n[environments.Slates]", "k must be"),
        ("runs = 0\nsizes = [{ k = 1, rounds = 3 }]\n[policies.C2UCB]\n[environments.Slates]", "runs must be"),
        ("policies = 3", "must hold tables"),
        ("sizes = [{ k = 1, rounds = 3 }]\n[policies.Nobody]\n[environments.Slates]", "'Nobody' is not a class"),
        ("sizes = [{ k = 1, rounds = 3 }]\n[policies.C2UCB]\nx = 1\n[environments.Slates]", "no option 'x'"),
        ("sizes = [{ k = 1, rounds = 3 }]\n[policies.C2UCB]\nradius = 'big'\n[environments.Slates]", "radius must be"),
        ("sizes = [{ k = 1, rounds = 3 }]\n[policies.C2UCB]\n[environments.TopK]", "'TopK' is not a class"),
        ("sizes = [{ k = 1, rounds = 3 }]\n[policies.C2UCB]\n[environments.EpsilonGreedy]\nn_features = 3", "rounds"),
        ("sizes = [{ k = 1, rounds = 3 }]\n[policies.p]\nclass = 'no.py:P'\n[environments.Slates]", "does not exist"),
        ("sizes = [{ k = 1, rounds = 3 }]\n[policies.p]\nclass = 'nowhere:P'\n[environments.Slates]", "cannot import"),
        ("sizes = [{ k = 1, rounds = 3 }]\n[policies.p]\nclass = 'math:P'\n[environments.Slates]", "has no class 'P'"),
        ("sizes = [{ k = 1, rounds = 3 }]\n[policies.p]\nclass = 'os:path'\n[environments.Slates]", "has no class"),
        ("sizes = [{ k = 1, rounds = 3 }]\n[policies.p]\nclass = 5\n[environments.Slates]", "a name in quotes"),
        ("sizes = [{ k = 1, rounds = 3 }]\n[policies.Policy]\n[environments.Slates]", "'Policy' is not a class"),
        ("sizes = [{ k = 1, rounds = 3 }]\n[policies.C2UCB]\nseed = 3\n[environments.Slates]", "takes no seed"),
        ("sizes = [{ k = 1, rounds = 3 }]\n[policies.C2UCB]\n[environments.Slates]\nk = 3", "'Slates' takes no k: the"),
        ("sizes = 5", "sizes must be a list"),
        (
            "sizes = [{ k = 1, rounds = 3 }, { k = 1, rounds = 3 }]\n[policies.C2UCB]\n[environments.Slates]",
            "different",
        ),
        ("sizes = [{ k = 9, rounds = 3 }]\n[policies.C2UCB]\n[environments.Slates]\nn_arms = 5", "at most the number"),
        (
            "sizes = [{ k = 1, rounds = 3 }]\n[policies.mine]\nclass = 'CappedC2UCB'\n[environments.Slates]",
            "^policy 'mine' needs a cap, a number that no arm's mean reward exceeds, like cap = 1.0; C2UCB needs none$",
        ),
    ],
)
def test_a_wrong_plan_is_refused_in_a_sentence(tmp_path, text, message):
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        check(read_plan(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("before", "repeated", "message"),
    [
        ("sizes = ", 100_000 * "[", r"plan\.toml is not a plan: it is nested too deeply$"),
        ("runs = ", 5_000 * "9", r"plan\.toml is not TOML: "),
    ],
    ids=["deep", "long number"],
)
def test_an_absurd_plan_is_refused_in_a_sentence(tmp_path, before, repeated, message):
    path = tmp_path / "plan.toml"
    path.write_text(before + repeated)
    with pytest.raises(ValueError, match=message):
        read_plan(path)


@pytest.mark.parametrize("options", [{"cap": 0.0}, {"cap": 1.0}, {"norm": 1.0}, {"spread": 2.0}])
def test_any_kind_of_cap_will_do(options):
    plan = replace(TINY, policies={"mine": Recipe("CappedC2UCB", options)})
    check(plan)
    run_cell(plan.cells()[0])


def test_a_class_that_brings_its_own_caps_needs_none_in_the_plan(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "from armful import CappedC2UCB\n"
        "class Scoring(CappedC2UCB):\n"
        "    def score(self, arms, k):\n"
        "        arms.caps = np.ones(arms.n_arms)\n"
        "        return super().score(arms, k)\n"
        "class Choosing(CappedC2UCB):\n"
        "    def choose(self, X, constraint, **more):\n"
        "        return super().choose(X, constraint, caps=np.ones(len(X)), **more)\n"
    )
    for name in ("Scoring", "Choosing"):
        plan = replace(TINY, policies={"mine": Recipe(f"{tmp_path / 'mine.py'}:{name}")})
        check(plan)
        run_cell(plan.cells()[0])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_fine(tmp_path, encoding):
    path = tmp_path / "plan.toml"
    path.write_bytes(EXAMPLE.encode(encoding))
    assert read_plan(path) == read_plan_of(tmp_path, EXAMPLE)


def read_plan_of(folder, text):
    (folder / "plain.toml").write_text(text, encoding="utf-8")
    return read_plan(folder / "plain.toml")


SIZES = "sizes = [{ k = 2, rounds = 3 }]\n"

NOT_TO_BE_CALLED = """
import pathlib
class Touch:
    def __init__(self, **options):
        pathlib.Path(__file__).with_name("ran").touch()
class Rounds(Touch):
    n_features = 3
    def rounds(self, n_rounds, rng):
        pass
class Learner(Touch):
    def choose(self, X, constraint):
        pass
    def learn(self, X, r):
        pass
"""


@pytest.mark.parametrize(
    ("section", "kind", "sentence"),
    [
        ("policies", "subprocess:Popen", "subprocess:Popen is neither a policy, .* nor an environment"),
        ("environments", "subprocess:Popen", "subprocess:Popen is neither a policy, .* nor an environment"),
        ("policies", "mine.py:Touch", "mine.py:Touch is neither a policy, .* nor an environment"),
        ("policies", "mine.py:Rounds", "policy 'shell': .*mine.py:Rounds is not a policy"),
        ("environments", "mine.py:Learner", "environment 'shell': .*mine.py:Learner is not an environment"),
    ],
)
def test_a_class_that_is_not_what_the_plan_says_is_never_called(tmp_path, section, kind, sentence):
    ran = tmp_path / "ran"
    (tmp_path / "mine.py").write_text(NOT_TO_BE_CALLED)
    options = f"args = ['touch', '{ran}']\n" if kind == "subprocess:Popen" else ""
    other = "[environments.Slates]" if section == "policies" else "[policies.C2UCB]"
    with pytest.raises(ValueError, match=sentence):
        check(read_plan_of(tmp_path, f"{SIZES}[{section}.shell]\nclass = '{kind}'\n{options}{other}\n"))
    assert not ran.exists()


MANY = 10**12


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"runs": MANY}, f"{MANY} runs of 5 rounds would take 280,000"),
        ({"sizes": [(2, MANY)]}, f"3 runs of {MANY} rounds would take"),
        (Recipe("Slates", {"n_arms": MANY}), f"n_arms = {MANY} with n_features = 10 would take"),
        (Recipe("Slates", {"n_features": 10**6}), "estimates with n_features = 1000000 would take"),
        (Recipe("Slates", {"n_arms": 10**9}), "n_arms = 1000000000 with n_features = 10 would take"),
        (Recipe("Campaign", {"n_arms": MANY**9}), f"n_arms = {MANY**9} with n_features = 20 would take"),
        (Recipe("Budgets", {"n_arms": MANY}), f"n_arms = {MANY} with n_features = 5 would take"),
        (Recipe("Regions", {"n_arms": MANY}), f"n_arms = {MANY} with n_features = 5 would take"),
        (Recipe("Panels", {"n_arms": MANY}), f"n_arms = {MANY} with n_features = 5 would take"),
        (Recipe("Bundles", {"n_arms": MANY}), f"n_arms = {MANY} with n_features = 5 would take"),
        (Recipe("Bundles", {"n_bundles": MANY}), f"n_bundles = {MANY} with k = 2 would take"),
        (Recipe("Networks", {"n_sites": 10**6}), "n_sites = 1000000 would take"),
        (Recipe("Routes", {"side": 10**6}), "side = 1000000 with n_features = 5 would take"),
        (Recipe("Matchings", {"n_tasks": MANY}), f"n_workers = 10 with n_tasks = {MANY} would take"),
    ],
)
def test_sizes_that_no_memory_holds_are_refused_in_a_sentence(change, sentence, monkeypatch):
    monkeypatch.setattr(checks, "memory_size", lambda: 64 * 10**9)
    plan = replace(TINY, **(change if isinstance(change, dict) else {"environments": {"a": change}}))
    with pytest.raises(ValueError, match=sentence + r".* GB of memory, this machine has 64 GB$"):
        check(plan)


@pytest.mark.parametrize("kind", ["NoiseLowerBound", "LearningLowerBound", "CombinedLowerBound"])
def test_a_k_that_no_memory_holds_is_refused_in_a_sentence(kind):
    with pytest.raises(ValueError, match=f"k = {MANY} with n_features = .* GB of memory, this machine has"):
        check(replace(TINY, environments={"a": Recipe(kind, {"n_features": 4})}, sizes=[(MANY, 3)]))


def test_all_that_fits_alone_but_not_at_once_is_refused_too(monkeypatch):
    monkeypatch.setattr(checks, "memory_size", lambda: 10**9)
    plan = replace(TINY, runs=100, environments={"a": Recipe("Slates", {"n_arms": 10**6})})
    with pytest.raises(ValueError, match=r"^50 runs at once with n_arms = 1000000 and n_features = 10 would take 4 GB"):
        check(plan)
    check(replace(plan, runs=2))


@pytest.mark.parametrize("name", ['""', '"a\\nb"', '"a\\u001b[31m"'])
def test_names_that_no_terminal_shows_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match="names must be printable and not empty, got"):
        read_plan_of(tmp_path, f"{SIZES}[policies.{name}]\nclass = 'C2UCB'\n[environments.Slates]\n")


def test_a_missing_plan_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        read_plan(tmp_path / "plan.toml")


@pytest.mark.parametrize("n_features", ["3.5", "'three'", "None", "0"])
def test_an_own_environment_without_a_number_of_features_is_refused(tmp_path, n_features):
    (tmp_path / "mine.py").write_text(
        f"class Town:\n    n_features = {n_features}\n    def rounds(self, n_rounds, rng):\n        return iter(())\n"
    )
    plan = replace(TINY, environments={"town": Recipe(f"{tmp_path / 'mine.py'}:Town")})
    with pytest.raises(ValueError, match="n_features of environment 'town' must be a whole number of at least 1, got"):
        check(plan)
