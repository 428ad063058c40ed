import json
import subprocess
import sys

LISTING = """
import json, sys
before = set(sys.modules)
import {module}
loaded = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(json.dumps(sorted(loaded - set(sys.stdlib_module_names))))
"""


def loaded_by(module):
    code = LISTING.format(module=module)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=900)
    numpys_own = ("_", "cython", "charset_normalizer")  # numpy and scipy load these where they are installed
    return {name for name in json.loads(done.stdout) if not name.lower().startswith(numpys_own)}


def test_importing_armful_needs_numpy_and_scipy_only():
    assert loaded_by("armful") <= {"armful", "numpy", "scipy"}


def test_the_contract_suites_need_no_test_runner():
    assert loaded_by("armful.testing") <= {"armful", "numpy", "scipy"}


def test_the_listing_sees_what_is_foreign():
    assert "mpmath" in loaded_by("armful, mpmath")


def test_annotations_do_not_ask_more_of_scipy_than_its_oldest_version_has():
    """Before scipy 1.16 `csr_array[np.float64]` raises when it is evaluated."""
    plain = "scipy.sparse.csr_array = type('csr_array', (scipy.sparse.csr_array,), {'__class_getitem__': None})"
    code = f"import scipy.sparse; {plain}; import armful; armful.SpanningTree([(0, 1)]).best([1.0])"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=900)
