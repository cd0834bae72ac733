"""Text models of other programs, taken apart: what they say, and what is no model."""

from pathlib import Path

import numpy as np
import pytest

from polyplane.model.foreign.liblinear_model import liblinear_model
from polyplane.model.foreign.libsvm_model import libsvm_model
from polyplane.model.foreign.model_text import is_text_model, number_rows, read_text_model
from polyplane.model.format.model_file import ModelError

FILES = Path(__file__).parent / "files"
SVM = """svm_type c_svc
kernel_type polynomial
degree 3
gamma 0.5
coef0 -1
nr_class 3
total_sv 4
rho 0.1 0.2 0.3
label 5 -1 2
nr_sv 1 2 1
SV
1 0.5 1:2 3:4
-1 0 2:1
0 2.5e-1 1:1
-0.25 -0.5
"""
LINEAR = """solver_type L2R_LR
nr_class 3
label 1 0 7
nr_feature 2
bias 2
w
1 2 3
4 5 6
0.5 1 1.5
"""
TWO = LINEAR.replace("nr_class 3", "nr_class 2").replace(" 0 7", " -1")
TWO = TWO[: TWO.index("w\n")] + "w\n3 \n-1 \n0.5 \n"
READERS = {"LIBSVM": libsvm_model, "LIBLINEAR": liblinear_model}


def read(tmp_path, text):
    """What the text, as a file, says."""
    path = tmp_path / "a.model"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    model = read_text_model(path)
    return READERS[model.program](model)


def test_a_model_of_libsvm_is_its_vectors_and_pairs(tmp_path):
    found = read(tmp_path, SVM)
    assert found.kernel == {"kernel": "poly", "gamma": 0.5, "degree": 3, "coef0": -1.0}
    assert found.labels.tolist() == [5, -1, 2]
    assert found.codes.tolist() == [0, 1, 1, 2]
    assert [row.split() for row in found.vectors.rows] == [
        [b"1:2", b"3:4"], [b"2:1"], [b"1:1"], []
    ]  # fmt: skip
    assert found.vectors.first_line == 12
    pairs = {
        (0, 1): ([0, 1, 2], [1, -1, 0], 0.1),
        (0, 2): ([0, 3], [0.5, -0.25], 0.2),
        (1, 2): ([1, 2, 3], [0, 0.25, -0.5], 0.3),
    }
    for (i, j), expected in pairs.items():
        *arrays, rho = found.pair(i, j)
        assert (*(array.tolist() for array in arrays), rho) == expected


@pytest.mark.parametrize("kernel", ["linear", "rbf", "sigmoid"])
def test_a_kernel_has_the_numbers_that_it_needs(kernel, tmp_path):
    text = SVM.replace("polynomial", kernel).replace("degree 3\n", "")
    expected = {"linear": {}, "rbf": {"gamma": 0.5}, "sigmoid": {"gamma": 0.5, "coef0": -1.0}}
    assert read(tmp_path, text).kernel == {"kernel": kernel, **expected[kernel]}


def test_probabilities_of_libsvm_are_passed_over(tmp_path):
    assert read(tmp_path, SVM.replace("nr_sv", "probA 1 2 3\nprobB 1 2 3\nnr_sv")).labels.size == 3


def test_keys_may_stand_in_any_order_and_lines_end_as_in_dos(tmp_path):
    *keys, _ = SVM[: SVM.index("SV\n")].split("\n")
    text = "\n".join([keys[0], *keys[:0:-1], "SV", SVM[SVM.index("SV\n") + 3 :]])
    for written in (text, text.replace("\n", "\r\n"), text.replace(" ", "\t")):
        found = read(tmp_path, written)
        assert found.coefs.tolist() == [[1, 0.5], [-1, 0], [0, 0.25], [-0.25, -0.5]]


def test_a_model_of_liblinear_is_a_plane_of_each_class(tmp_path):
    found = read(tmp_path, LINEAR)
    assert found.labels.tolist() == [1, 0, 7]
    assert found.weights.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert found.intercepts.tolist() == [1, 2, 3]  # bias times the last weights
    assert found.has_intercept


def test_two_classes_of_liblinear_share_one_plane(tmp_path):
    found = read(tmp_path, TWO)
    assert (found.weights[0] - found.weights[1]).tolist() == [3, -1]  # w x > 0 is the first label
    assert found.intercepts[0] - found.intercepts[1] == 1
    joint = TWO.replace("L2R_LR", "MCSVM_CS").replace("3 \n-1 \n0.5 \n", "3 1\n-1 0\n0.5 0\n")
    assert read(tmp_path, joint).weights.tolist() == [[3, -1], [1, 0]]


@pytest.mark.parametrize("bias", ["-1", "0"])
def test_a_bias_that_is_not_positive_is_no_intercept(bias, tmp_path):
    text = LINEAR.replace("bias 2", f"bias {bias}")
    if bias == "-1":
        text = text.replace("0.5 1 1.5\n", "")
    found = read(tmp_path, text)
    assert found.weights.shape == (3, 2)
    assert not found.intercepts.any()
    assert not found.has_intercept


# ---- what is no model --------------------------------------------------------------------

BAD_SVM = [
    ("c_svc", "one_class", "line 1: is a one-class SVM"),
    ("c_svc", "nu_svr", "line 1: is a regression"),
    ("c_svc", "epsilon_svr", "line 1: is a regression"),
    ("c_svc", "d_svc", "line 1: svm_type is 'd_svc'"),
    ("c_svc", "", "line 1: svm_type has 0 values, expected 1"),
    ("polynomial", "precomputed", "line 2: its kernel 'precomputed' names only rows"),
    ("polynomial", "chi2", "line 2: its kernel 'chi2' is unknown"),
    ("kernel_type polynomial\n", "", "no line `kernel_type`"),
    ("degree 3", "degree 2.5", "line 3: degree is '2.5', expected a whole number from 1 to 100"),
    ("degree 3", "degree 0", "line 3: degree is '0'"),
    ("degree 3", "degree 1000000", "line 3: degree is '1000000'"),
    ("degree 3", "degree " + "9" * 5000, "line 3: degree is '9999"),
    ("gamma 0.5", "gamma 0", "line 4: gamma is 0, expected a number above 0"),
    ("gamma 0.5", "gamma nan", "line 4: found 'nan', expected a finite number"),
    ("gamma 0.5", "gamma inf", "line 4: found 'inf', expected a finite number"),
    ("gamma 0.5", "gamma 0.5 0.5", "line 4: gamma has 2 values, expected 1"),
    ("gamma 0.5\n", "", "no line `gamma`"),
    ("coef0 -1", "coef0 1e11", "line 5: coef0 is 1e\\+11"),
    ("coef0 -1", "coef0 minus", "line 5: found 'minus', expected a number"),
    ("nr_class 3", "nr_class 1", "line 6: nr_class is '1', expected a whole number from 2 to 256"),
    ("nr_class 3", "nr_class 2000000000", "line 6: nr_class is '2000000000'"),
    ("nr_class 3", "nr_class 2", "label has 3 values, expected 2"),
    ("total_sv 4", "total_sv 0", "line 7: total_sv is '0'"),
    ("total_sv 4", "total_sv 2147483647", "line 10: nr_sv adds up to 4, but total_sv"),
    ("nr_sv 1 2 1", "nr_sv 1 2 2147483644", "line 10: nr_sv adds up to 2,147,483,647"),
    ("nr_sv 1 2 1", "nr_sv 1 4 -1", "line 10: nr_sv is '-1'"),
    ("nr_sv 1 2 1", "nr_sv 1 3", "line 10: nr_sv has 2 values, expected 3"),
    ("nr_sv 1 2 1\n", "", "no line `nr_sv`"),
    ("rho 0.1 0.2 0.3", "rho 0.1 0.2", "line 8: rho has 2 values, expected 3"),
    ("rho 0.1 0.2 0.3", "rho 0.1 0.2 NaN", "line 8: found 'NaN'"),
    ("label 5 -1 2", "label 5 -1 5", "line 9: label names a class twice"),
    ("label 5 -1 2", "label 5 -1 0.5", "line 9: label is '0.5'"),
    ("label 5 -1 2\n", "", "no line `label`"),
    ("rho 0.1", "gamma 0.1", "line 8: gamma stands there a second time"),
    ("rho 0.1", "rhu 0.1", "line 8: found 'rhu'; a key of LIBSVM's models or `SV`"),
    ("rho 0.1", "rho: 0.1", "line 8: found 'rho:'"),
    ("rho 0.1", "\nrho 0.1", "line 8: found ''; a key"),
    ("SV\n", "", "line 11: found '1'; a key"),
    ("1 0.5 1:2", "1 1:2", "line 12: found 1 numbers, expected 2"),
    ("-1 0 2:1", "-1 0 0 2:1", "line 13: found 3 numbers, expected 2"),
    ("-1 0 2:1", "2:1", "line 13: found 0 numbers, expected 2"),
    ("-1 0 2:1", "-1 x 2:1", "line 13: found 'x', expected a number"),
    ("-1 0 2:1", "-1 1_0 2:1", "line 13: found '1_0', expected a number"),
    ("-1 0 2:1", "-1 1e999 2:1", "line 13: found '1e999', expected a finite number"),
    ("-1 0 2:1", "-1 é 2:1", "line 13: found"),
    ("-0.25 -0.5\n", "", "line 15: found 3 rows, expected 4 as total_sv says"),
    ("-0.25 -0.5\n", "-0.25 -0.5\n\n", "line 16: found 5 rows, expected 4"),
    ("-0.25 -0.5\n", "-0.25 -0.5", "is cut short"),
]
BAD_LINEAR = [
    ("L2R_LR", "L2R_L2LOSS_SVR", "line 1: is a regression \\(L2R_L2LOSS_SVR\\)"),
    ("L2R_LR", "ONECLASS_SVM", "line 1: is a one-class SVM"),
    ("L2R_LR", "L3R_LR", "line 1: solver_type is 'L3R_LR', expected one of L2R_LR"),
    ("nr_class 3", "nr_class 4", "line 3: label has 3 values, expected 4"),
    ("label 1 0 7\n", "", "no line `label`"),
    ("nr_feature 2", "nr_feature 0", "line 4: nr_feature is '0'"),
    ("nr_feature 2", "nr_feature 2147483647", "line 10: found 3 rows, expected 2,147,483,648"),
    ("nr_feature 2", "nr_feature 1", "line 9: found 3 rows, expected 2 as nr_feature says"),
    ("nr_feature 2", "nr_feature 99999999999999", "line 4: nr_feature is '99999999999999'"),
    ("bias 2", "bias -2", "line 9: found 3 rows, expected 2"),
    ("bias 2", "bias infinity", "line 5: found 'infinity', expected a finite number"),
    ("4 5 6", "4 5", "line 8: found 2 numbers, expected 3"),
    ("4 5 6", "4 5 6 7", "line 8: found 4 numbers, expected 3"),
    ("4 5 6", "   ", "line 8: found 0 numbers, expected 3"),
    ("4 5 6", "4 5 -inf", "line 8: found '-inf', expected a finite number"),
    ("4 5 6", "4 5 0x6", "line 8: found '0x6', expected a number"),
    ("1 2 3\n4 5 6\n0.5 1 1.5\n", " \n \n \n", "line 7: found 0 numbers, expected 3"),
]


@pytest.mark.parametrize(
    ("text", "old", "new", "words"),
    [
        *((SVM, *bad) for bad in BAD_SVM), *((LINEAR, *bad) for bad in BAD_LINEAR),
    ],
)  # fmt: skip
def test_one_sentence_says_where_and_what_is_wrong(text, old, new, words, tmp_path):
    assert old in text
    with pytest.raises(ModelError, match=words) as caught:
        read(tmp_path, text.replace(old, new, 1))
    assert str(caught.value).startswith(str(tmp_path / "a.model: "))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", [SVM, LINEAR])
def test_a_file_that_is_cut_anywhere_is_refused(text, tmp_path):
    for end in range(len(text)):
        with pytest.raises(ModelError):
            read(tmp_path, text[:end])


def test_a_text_model_is_known_by_its_first_line(tmp_path):
    for text in (SVM, LINEAR):
        (tmp_path / "a").write_text(text)
        assert is_text_model(tmp_path / "a")
    for name in ("iris_svm.model", "iris_linear.model"):
        assert is_text_model(FILES / name)
    for text in ("", "\n", "svm_types c_svc\n", "1 1:2 2:3\n", "\nsvm_type c_svc\n", "w\n"):
        (tmp_path / "a").write_text(text)
        assert not is_text_model(tmp_path / "a")
        with pytest.raises(ModelError, match="is no text model"):
            read_text_model(tmp_path / "a")
    assert not is_text_model(tmp_path)
    assert not is_text_model(tmp_path / "absent")
    with pytest.raises(ModelError, match=r"absent: cannot be read \(No such file"):
        read_text_model(tmp_path / "absent")


def test_numbers_are_read_to_the_last_bit():
    numbers = np.random.default_rng(0).standard_normal((50, 3)) ** 9
    text = ["".join(f" {x:.17g}" for x in row).encode() for row in numbers]
    np.testing.assert_array_equal(number_rows(text, 3, 1, "a"), numbers)
