"""The C of exported classifiers: functions that read the tables which `c_headers/header.py` writes.

`name_` begins the names of functions, `NAME_` those of macros and tables. `$real` is the type of
leads, float where they come from planes and double where they come from kernels. Rows that users
give are `$row`, called `$given`: numbers, or the columns of a table (`table.py`). The C of single
kernels and rules is in `model/kernels/kernel_formulas.py` and
`model/many_classes/decision_rules.py`.
"""

__all__ = [
    "BEST_CLASS",
    "CLASSES_BY_GROUP",
    "CLASSES_BY_LEAD",
    "DECIDE",
    "GROUPS",
    "GROUPS_EMPTY_SCORE",
    "GROUPS_MEAN",
    "GROUPS_SOFT",
    "GROUPS_WITHOUT",
    "KERNEL",
    "KERNEL_SCORES",
    "KERNEL_SCORES_OF_TWO",
    "MAPPED_ROWS",
    "PLAIN_ROWS",
    "PLANES",
    "PLANE_SCORES",
    "PREDICT",
    "PROBABILITIES",
    "PRODUCT",
    "PRODUCT_ROWS",
    "SPARSE_ROWS",
]

# ---- planes ------------------------------------------------------------------------------

PLANES = """
/* Adds a feature of a row to the scores of all planes. */
static inline void name_add(float *planes, int32_t feature, float value) {
    if (value == 0.0f) return;
    for (int32_t k = 0; k < NAME_N_PLANES; k++) planes[k] += value * NAME_SUMS[feature][k];
}

static inline void name_start(float *planes) {
    for (int32_t k = 0; k < NAME_N_PLANES; k++) planes[k] = NAME_CONSTANTS[k];
}

/* Sums are scaled in the end: those of rows of whole numbers are exact. */
static inline void name_finish(float *planes) {
    for (int32_t k = 0; k < NAME_N_PLANES; k++) planes[k] *= NAME_SCALES[k];
}
"""

PLAIN_ROWS = """
/* Scores of all planes on a row. */
static inline void name_planes(const float *x, float *planes) {
    name_start(planes);
    for (int32_t j = 0; j < NAME_WIDTH; j++) name_add(planes, j, name_scaled(j, x[j]));
    name_finish(planes);
}
"""

RANKS = """
/* Rank of a value: lines between the knots of its column, level beyond them. */
static inline float name_rank(const int32_t *starts, const float *knots, const float *ranks,
                              int32_t j, float x) {
    int32_t low = starts[j], high = starts[j + 1] - 2;
    while (low < high) {
        int32_t middle = (low + high + 1) / 2;
        if (knots[middle] <= x) low = middle;
        else high = middle - 1;
    }
    float share = (x - knots[low]) / (knots[low + 1] - knots[low]);
    share = share < 0.0f ? 0.0f : share > 1.0f ? 1.0f : share;
    return ranks[low] + share * (ranks[low + 1] - ranks[low]);
}
"""

COLUMNS = """
/* What is mapped: the columns of a row. */
static inline void name_turn(const float *x, float *seen) {
    for (int32_t j = 0; j < NAME_WIDTH; j++) seen[j] = name_scaled(j, x[j]);
}
"""

TURNED_COLUMNS = """
/* What is mapped: the columns of a row, and directions through their ranks. */
static inline void name_turn(const float *x, float *seen) {
    float *directions = seen + NAME_WIDTH;
    int32_t ranked = 0;
    for (int32_t d = 0; d < NAME_N_DIRECTIONS; d++) directions[d] = 0.0f;
    for (int32_t j = 0; j < NAME_WIDTH; j++) {
        seen[j] = name_scaled(j, x[j]);
        if (NAME_TURN_STARTS[j] == NAME_TURN_STARTS[j + 1]) continue;
        float rank = name_rank(NAME_TURN_STARTS, NAME_TURN_KNOTS, NAME_TURN_RANKS, j, seen[j]);
        for (int32_t d = 0; d < NAME_N_DIRECTIONS; d++)
            directions[d] += rank * NAME_TURN_WEIGHTS[ranked][d];
        ranked++;
    }
}
"""

MAPPED_ROWS = """
/* Scores of all planes on a row: a linear feature of each column, and two hats beside its rank. */
static inline void name_planes(const float *x, float *planes) {
    float seen[NAME_WIDTH + NAME_N_DIRECTIONS];
    name_turn(x, seen);
    name_start(planes);
    for (int32_t j = 0; j < NAME_WIDTH + NAME_N_DIRECTIONS; j++) {
        float value = seen[j];
        if (NAME_KNOT_STARTS[j] < NAME_KNOT_STARTS[j + 1])
            value = name_rank(NAME_KNOT_STARTS, NAME_KNOTS, NAME_RANKS, j, value);
        name_add(planes, j, (value - NAME_SHIFTS[j]) * NAME_FACTORS[j]);
        if (NAME_N_HATS[j] > 0) {
            float place = value * (float)(NAME_N_HATS[j] - 1);
            int32_t i = place > 0.0f ? (int32_t)place : 0;
            if (i > NAME_N_HATS[j] - 2) i = NAME_N_HATS[j] - 2;
            name_add(planes, NAME_FIRST_HAT[j] + i, NAME_HEIGHT * (1.0f - (place - (float)i)));
            name_add(planes, NAME_FIRST_HAT[j] + i + 1, NAME_HEIGHT * (place - (float)i));
        }
    }
    name_finish(planes);
}
"""

PRODUCT_ROWS = """
/* Scores of all planes on a row: columns, and products of two columns. */
static inline void name_planes(const float *x, float *planes) {
    float row[NAME_WIDTH];
    int32_t feature = NAME_WIDTH;
    name_start(planes);
    for (int32_t j = 0; j < NAME_WIDTH; j++) {
        row[j] = name_scaled(j, x[j]);
        name_add(planes, j, row[j]);
        for (int32_t i = 0; i <= j; i++) name_add(planes, feature++, row[i] * row[j]);
    }
    name_finish(planes);
}
"""

SPARSE_ROWS = """
/* The same for n entries of a row of which all others are zero; columns count from 0, come once
   each in any order, and are left out where the model has no such column. */
static inline void name_scores_sparse(const int32_t *columns, const float *values, size_t n,
                                      float *scores) {
    float planes[NAME_N_PLANES];
    name_start(planes);
    for (size_t k = 0; k < n; k++) {
        int32_t j = columns[k];
        if (j >= 0 && j < NAME_WIDTH) name_add(planes, j, name_scaled(j, values[k]));
    }
    name_finish(planes);
    name_classes(planes, scores);
}

static inline int name_predict_sparse(const int32_t *columns, const float *values, size_t n) {
    float scores[NAME_N_CLASSES];
    name_scores_sparse(columns, values, n, scores);
    return name_best(scores);
}
"""

# ---- groups of planes --------------------------------------------------------------------

GROUPS_WITHOUT = """\
    float lowest = 0.0f;
    for (int32_t k = 0; k < NAME_N_PLANES; k++) if (planes[k] < lowest) lowest = planes[k];
    float without = lowest - (lowest < -1e6f ? -1e-6f * lowest : 1.0f);
"""

GROUPS_EMPTY_SCORE = """\
    if (without < NAME_EMPTY_SCORE) without = NAME_EMPTY_SCORE;
"""

GROUPS_SOFT = """\
        if (end - start > 1) {
            float total = 0.0f;
            for (int32_t k = start; k < end; k++) total += expf(planes[k] - best);
            best += logf(total);
        }
"""

GROUPS = """
/* Score of each group of planes that speak with one voice. */
static inline void name_groups(const float *planes, float *groups) {
$without\
    for (int32_t g = 0; g < NAME_N_GROUPS * NAME_N_ESTIMATORS * NAME_N_UNITS; g++) {
        int32_t start = NAME_GROUP_STARTS[g], end = NAME_GROUP_STARTS[g + 1];
        float best = $first;
        for (int32_t k = start + 1; k < end; k++) if (planes[k] > best) best = planes[k];
$soft\
        groups[g] = best$weight;
    }
$units\
$mean\
}
"""

GROUPS_UNITS = """\
    for (int32_t g = 0; g < NAME_N_GROUPS * NAME_N_ESTIMATORS; g++) {
        float total = groups[g * NAME_N_UNITS];
        for (int32_t u = 1; u < NAME_N_UNITS; u++) total += groups[g * NAME_N_UNITS + u];
        groups[g] = total;
    }
"""

GROUPS_MEAN = """\
    for (int32_t g = 0; g < NAME_N_GROUPS; g++) {
        float total = 0.0f;
        for (int32_t e = 0; e < NAME_N_ESTIMATORS; e++) total += groups[e * NAME_N_GROUPS + g];
        groups[g] = total / (float)NAME_N_ESTIMATORS;
    }
"""

# ---- classes -----------------------------------------------------------------------------

CLASSES_BY_GROUP = """
/* Scores of classes from those of planes. */
static inline void name_classes(const float *planes, float *scores) {
    float groups[NAME_N_GROUPS * NAME_N_ESTIMATORS * NAME_N_UNITS];
    name_groups(planes, groups);
    for (int32_t c = 0; c < NAME_N_CLASSES; c++) scores[c] = groups[c];
}
"""

CLASSES_BY_LEAD = """
/* Scores of classes from those of planes. */
static inline void name_classes(const float *planes, float *scores) {
    float groups[NAME_N_GROUPS * NAME_N_ESTIMATORS * NAME_N_UNITS], leads[NAME_N_PROBLEMS];
    name_groups(planes, groups);
    for (int32_t p = 0; p < NAME_N_PROBLEMS; p++) leads[p] = groups[2 * p + 1] - groups[2 * p];
    name_decide(leads, scores);
}
"""

DECIDE = """
/* Scores of classes from how far the second side of each problem leads. */
static inline void name_decide(const $real *leads, float *scores) {
$rule\
}
"""

BEST_CLASS = """
/* The first of the classes with the highest score. */
static inline int name_best(const float *scores) {
    int best = 0;
    for (int c = 1; c < NAME_N_CLASSES; c++) if (scores[c] > scores[best]) best = c;
    return best;
}
"""

PLANE_SCORES = """
/* Score of each class on a row of $numbers numbers. */
static inline void $scores(const float *x, float *scores) {
    float planes[NAME_N_PLANES];
    name_planes(x, planes);
    name_classes(planes, scores);
}
"""

PREDICT = """
/* Number of the class of a row: its label is NAME_CLASSES[number]. */
static inline int name_predict($row) {
    float scores[NAME_N_CLASSES];
    name_scores($given, scores);
    return name_best(scores);
}
"""

PROBABILITIES = """
/* Probability of each class on a row. */
static inline void name_probabilities($row, float *probabilities) {
    double weights[NAME_N_CLASSES], best, total = 0.0;
    name_scores($given, probabilities);
    for (int32_t c = 0; c < NAME_N_CLASSES; c++) {
        weights[c] = NAME_CALIBRATION * (double)probabilities[c];
    }
    best = weights[0];
    for (int32_t c = 1; c < NAME_N_CLASSES; c++) if (weights[c] > best) best = weights[c];
    for (int32_t c = 0; c < NAME_N_CLASSES; c++) total += weights[c] = exp(weights[c] - best);
    for (int32_t c = 0; c < NAME_N_CLASSES; c++) probabilities[c] = (float)(weights[c] / total);
}
"""

# ---- kernels -----------------------------------------------------------------------------

PRODUCT = """
static inline float name_product(const float *x, const float *z) {
    float sum = 0.0f;
    for (int32_t j = 0; j < NAME_WIDTH; j++) sum += x[j] * z[j];
    return sum;
}
"""

KERNEL = """
/* Value of the kernel. */
static inline float name_kernel(const float *x, const float *z) {
$formula\
}
"""

_KERNEL_SCORES = """
/* How far the second side of each problem leads. */
static inline void name_leads(const float *x, double *leads) {{
    float row[NAME_WIDTH];
    for (int32_t j = 0; j < NAME_WIDTH; j++) row[j] = name_scaled(j, x[j]);
    for (int32_t p = 0; p < NAME_N_PROBLEMS; p++) leads[p] = NAME_INTERCEPTS[p];
    for (int32_t i = 0; i < NAME_N_SUPPORT; i++) {{
        double value = (double)name_kernel(row, NAME_SUPPORT[i]);
        for (int32_t p = 0; p < NAME_N_PROBLEMS; p++) leads[p] += NAME_COEFS[i][p] * value;
    }}
}}

/* Score of each class on a row of $numbers numbers. */
static inline void $scores(const float *x, float *scores) {{
    double leads[NAME_N_PROBLEMS];
    name_leads(x, leads);
{decide}\
}}
"""

KERNEL_SCORES = _KERNEL_SCORES.format(decide="    name_decide(leads, scores);\n")

KERNEL_SCORES_OF_TWO = _KERNEL_SCORES.format(
    decide="""\
    for (int32_t c = 0; c < NAME_N_CLASSES; c++)
        scores[c] = c == NAME_SECOND ? (float)leads[0] : 0.0f;
"""
)
