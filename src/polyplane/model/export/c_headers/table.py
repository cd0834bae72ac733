"""Tables as C: a struct with a field for each column, and the function that makes a row x of it.

Numbers     double, NaN where there is none: the median then, and the column of x that says so.
            Large ones are scaled, and none is more than products in float32 bear.
Dates       double, seconds since 1970 by the clock of the column.
Categories  const char *, UTF-8, NULL where there is none; found by halving in sorted tables,
            without the blanks around them.
Statistics  of values and pairs of values: by halving in sorted tables of codes.
Free text   is refused: a table that has some is exported to ONNX.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from polyplane.model.export.c_headers.text import Header, literal, quoted
from polyplane.model.export.table_input import (
    CATEGORY,
    DATE,
    NONE,
    NUMBER,
    PARTS,
    WORDS,
    TableColumn,
    TableInput,
)
from polyplane.model.format.model_file import ModelError

__all__ = ["SCORES", "field_names", "write_table"]

FIELDS = {
    NUMBER: ("double ", "a number; NaN is missing"),
    DATE: ("double ", "seconds since 1970; NaN is missing"),
    CATEGORY: ("const char *", "NULL is missing"),
}
# words of C and C++, and names that are macros in spite of small letters
KEYWORDS = {
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
    "case", "catch", "char", "char8_t", "char16_t", "char32_t", "class", "compl", "concept",
    "const", "consteval", "constexpr", "constinit", "const_cast", "continue", "co_await",
    "co_return", "co_yield", "decltype", "default", "delete", "do", "double", "dynamic_cast",
    "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto",
    "if", "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq",
    "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register",
    "reinterpret_cast", "requires", "restrict", "return", "short", "signed", "sizeof", "static",
    "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local",
    "throw", "true", "try", "typedef", "typeid", "typename", "typeof", "typeof_unqual", "union",
    "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq",
    "linux", "unix", "errno", "far", "near", "huge", "pascal", "cdecl", "i386", "signgam", "isnan",
    "isinf", "offsetof",
}  # fmt: skip


# ---- C -----------------------------------------------------------------------------------

SET = """
static inline void name_set(float *x, int32_t column) {
    if (column >= 0) x[column] += 1.0f;
}

static inline void name_number(float *x, int32_t j, double value, float fill, int32_t missing) {
    double near = value > NAME_LARGEST ? NAME_LARGEST : value;
    x[j] = value != value ? fill : (float)(near < -NAME_LARGEST ? -NAME_LARGEST : near);
    if (value != value) name_set(x, missing);
}
"""

DATES = """
/* Days since a first one, and month, day of the week and hour, of seconds since 1970. */
static inline void name_date(float *x, int32_t j, double seconds, double origin, float fill,
                             int32_t missing, const int32_t *parts) {
    if (seconds != seconds) {
        x[j] = fill;
        name_set(x, missing);
        return;
    }
    double moment = floor(seconds * 1e6 + 0.5), day = floor(moment / 86400000000.0);
    x[j] = (float)((moment - origin) / 86400000000.0);
    int64_t shifted = (int64_t)day + 719468; /* from the 1st of March of year 0 */
    int64_t in_era = (shifted % 146097 + 146097) % 146097;
    int64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * year + year / 4 - year / 100);
    int64_t weekday = (((int64_t)day + 3) % 7 + 7) % 7;
    name_set(x, parts[((5 * in_year + 2) / 153 + 2) % 12]);
    name_set(x, parts[12 + weekday]);
    name_set(x, parts[19 + (int32_t)floor((moment - day * 86400000000.0) / 3600000000.0)]);
}
"""

TEXTS = """
/* Bytes of the blank with which a text begins, 0 if it does not. */
static inline int name_blank(const char *text) {
    const unsigned char *t = (const unsigned char *)text;
    if ((t[0] >= 9 && t[0] <= 13) || (t[0] >= 28 && t[0] <= 32)) return 1;
    if (t[0] == 0xC2) return t[1] == 0x85 || t[1] == 0xA0 ? 2 : 0;
    if (t[0] == 0xE1) return t[1] == 0x9A && t[2] == 0x80 ? 3 : 0;
    if (t[0] == 0xE3) return t[1] == 0x80 && t[2] == 0x80 ? 3 : 0;
    if (t[0] != 0xE2) return 0;
    if (t[1] == 0x81) return t[2] == 0x9F ? 3 : 0;
    if (t[1] != 0x80) return 0;
    return (t[2] >= 0x80 && t[2] <= 0x8A) || t[2] == 0xA8 || t[2] == 0xA9 || t[2] == 0xAF ? 3 : 0;
}

/* Lets a text begin behind its blanks; returns its length without those in the end. */
static inline size_t name_trimmed(const char **text) {
    const char *end, *at;
    if (*text == NULL) return 0;
    while (name_blank(*text)) *text += name_blank(*text);
    for (at = end = *text; *at;) {
        if (name_blank(at)) at += name_blank(at);
        else end = ++at;
    }
    return (size_t)(end - *text);
}

/* The place of a text of n bytes among sorted ones, or -1. */
static inline int32_t name_find(const char *text, size_t n, int32_t low, int32_t high) {
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        const char *other = NAME_TEXTS[middle];
        size_t k = 0;
        while (k < n && text[k] == other[k]) k++;
        if (k == n && other[k] == 0) return middle;
        if (k < n && (unsigned char)text[k] > (unsigned char)other[k]) low = middle + 1;
        else high = middle;
    }
    return -1;
}

static inline int name_is_missing(const char *text, size_t n) {
    return name_find(text, n, NAME_TEXT_STARTS[0], NAME_TEXT_STARTS[1]) >= 0;
}
"""

CATEGORIES = """
static inline void name_category(float *x, const char *text, int32_t table, int32_t rest,
                                 int32_t missing) {
    size_t n = name_trimmed(&text);
    if (name_is_missing(text, n)) {
        name_set(x, missing);
        return;
    }
    int32_t found = name_find(text, n, NAME_TEXT_STARTS[table], NAME_TEXT_STARTS[table + 1]);
    name_set(x, found < 0 ? rest : NAME_TEXT_COLUMNS[found]);
}
"""

STATISTICS = """
/* The code of a number among those that rise, that of a missing one, or -1. */
static inline int64_t name_number_code(double value, int32_t first, int32_t n) {
    int32_t low = first, high = first + n;
    float number = (float)value;
    if (value != value) return n;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (NAME_KEY_NUMBERS[middle] < number) low = middle + 1;
        else high = middle;
    }
    return low < first + n && NAME_KEY_NUMBERS[low] == number ? low - first : -1;
}

static inline int64_t name_text_code(const char *text, int32_t table, int32_t missing) {
    size_t n = name_trimmed(&text);
    if (name_is_missing(text, n)) return missing;
    int32_t found = name_find(text, n, NAME_TEXT_STARTS[table], NAME_TEXT_STARTS[table + 1]);
    return found < 0 ? -1 : NAME_TEXT_CODES[found];
}

static inline int64_t name_pair_code(int64_t first, int64_t second, int64_t n) {
    return first < 0 || second < 0 ? -1 : first * n + second;
}

/* Numbers of a code into x from column j on; those of codes that are not met are the last. */
static inline void name_statistic(float *x, int32_t j, int64_t code, int32_t k) {
    int32_t low = NAME_STATISTIC_STARTS[k], end = NAME_STATISTIC_STARTS[k + 1] - 1, high = end;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (NAME_STATISTIC_CODES[middle] < code) low = middle + 1;
        else high = middle;
    }
    if (low == end || NAME_STATISTIC_CODES[low] != code) low = end;
    for (int32_t c = 0; c < NAME_N_STATISTIC; c++) x[j + c] = NAME_STATISTIC_VALUES[low][c];
}
"""

SCORES = """
/* Score of each class on a row. */
static inline void name_scores($row, float *scores) {
    float x[NAME_WIDTH];
    name_columns($given, x);
    name_scores_of_x(x, scores);
}
"""

FILLED = """
/* Numbers without gaps, and that there were some. */
static inline void name_columns(const float *row, float *x) {
    for (int32_t j = NAME_N_FEATURES; j < NAME_WIDTH; j++) x[j] = 0.0f;
    for (int32_t j = 0; j < NAME_N_FEATURES; j++)
        name_number(x, j, row[j], NAME_FILLS[j], NAME_MISSING[j]);
}
"""


# ---- names -------------------------------------------------------------------------------


def field_names(columns: Sequence[TableColumn]) -> list[str]:
    """A field for each column: its name in letters, digits and underscores, different from all.

    Names all in capitals may be macros, and become small.
    """
    used: set[str] = set()
    names = []
    for place, column in enumerate(columns):
        ascii_name = unicodedata.normalize("NFKD", column.name).encode("ascii", "ignore").decode()
        name = re.sub(r"\W+", "_", ascii_name).strip("_")
        name = name.lower() if name.isupper() else name
        if not name or name[0].isdigit():
            name = f"column_{name or place + 1}"
        name = f"{name}_" if name in KEYWORDS else name
        free, k = name, 2
        while free in used:
            free, k = f"{name}_{k}", k + 1
        used.add(free)
        names.append(free)
    return names


# ---- writing -----------------------------------------------------------------------------


def write_table(header: Header, table: TableInput) -> str:
    """From the columns of a table to x; returns how the functions of users take a row."""
    header.code("\n")
    header.define("LARGEST", np.float64(table.largest))
    header.code(SET)
    if table.is_of_numbers:
        header.table("FILLS", np.array([one.fill for one in table.columns], np.float32))
        header.table("MISSING", np.array([one.missing for one in table.columns], np.int32))
        header.code(FILLED)
        return "const float *row"
    for column in table.columns:
        if column.kind == WORDS:
            raise ModelError(
                f"column {column.name!r} is free text, which the C export cannot read: export the "
                "model to ONNX instead, which can"
            )
    fields = field_names(table.columns)
    _write_struct(header, table, fields)
    texts = [column for column in table.columns if column.kind == CATEGORY]
    dates = [column for column in table.columns if column.kind == DATE]
    if dates:
        places = [[place for part in PARTS for place in one.parts[part]] for one in dates]
        header.table("DATE_PARTS", np.array(places, np.int32))
        header.code(DATES)
    if texts:
        _write_texts(header, table, texts)
    if table.statistics:
        _write_statistics(header, table, texts)
    _write_columns(header, table, fields, texts, dates)
    return "const name_row *row"


def _write_struct(header: Header, table: TableInput, fields: Sequence[str]) -> None:
    """Raw, for names of columns may look like ours."""
    lines = []
    for column, name in zip(table.columns, fields, strict=True):
        kind, words = FIELDS[column.kind]
        called = "" if name == column.name else f"{quoted(column.name)}: "
        comment = f"{called}{words}".replace("/", "\\057")
        lines.append(f"    {kind}{name}; /* {comment} */\n")
    header.code("\n/* A row of the table. */\ntypedef struct {\n")
    header.parts += lines
    header.code("} name_row;\n")


def _write_texts(header: Header, table: TableInput, texts: Sequence[TableColumn]) -> None:
    """All texts in one table, those that say that a value is missing first."""
    known: list[Mapping[str, int]] = [dict.fromkeys(table.missing_texts, NONE)]
    known += [_all_texts(table, column) for column in texts]
    sorted_texts = [_sorted(values) for values in known]
    header.texts("TEXTS", [text for values in sorted_texts for text in values])
    pairs = zip(known, sorted_texts, strict=True)
    places = [values[text] for values, kept in pairs for text in kept]
    header.table("TEXT_COLUMNS", np.array(places, np.int32))
    header.table("TEXT_STARTS", np.cumsum([0, *map(len, sorted_texts)]).astype(np.int32))
    header.code(TEXTS)
    header.code(CATEGORIES)


def _write_statistics(header: Header, table: TableInput, texts: Sequence[TableColumn]) -> None:
    """Codes of texts where the texts stand, numbers that are keys, and the tables of numbers."""
    codes = {table.columns[key.column].name: key.codes for key in table.keys if key.codes}
    placed = [NONE] * len(_sorted(table.missing_texts))
    for column in texts:
        known = codes.get(column.name, {})
        placed += [known.get(text, NONE) for text in _sorted(_all_texts(table, column))]
    header.table("TEXT_CODES", np.array(placed, np.int32))
    numbers = [key.numbers for key in table.keys]
    header.table("KEY_NUMBERS", np.concatenate([*numbers, np.zeros(1, np.float32)]))
    sizes = [one.codes.size + 1 for one in table.statistics]  # the last is that of all others
    header.table("STATISTIC_STARTS", np.cumsum([0, *sizes]).astype(np.int32))
    last = np.full(1, NONE, np.int64)
    all_codes = [part for one in table.statistics for part in (one.codes, last)]
    header.table("STATISTIC_CODES", np.concatenate(all_codes))
    values = [part for one in table.statistics for part in (one.values, one.rest[None])]
    header.table("STATISTIC_VALUES", np.vstack(values))
    header.code("\n")
    header.define("N_STATISTIC", table.statistics[0].rest.size)
    header.code(STATISTICS)


def _all_texts(table: TableInput, column: TableColumn) -> dict[str, int]:
    """Return the values of a category, those that only statistics know among them, by column."""
    of_keys = [key.codes for key in table.keys if table.columns[key.column] is column]
    known = {text: column.rest for codes in of_keys for text in codes}
    return {**known, **column.values}


def _sorted(texts: Iterable[str]) -> list[str]:
    """Texts by their bytes; those with a byte of 0, which C cannot be given, are left out."""
    return sorted((text for text in texts if "\0" not in text), key=lambda text: text.encode())


def _write_columns(
    header: Header,
    table: TableInput,
    fields: Sequence[str],
    texts: Sequence[TableColumn],
    dates: Sequence[TableColumn],
) -> None:
    """A call for each field."""
    header.code("\n/* The numbers that the model sees of a row. */\n")
    header.code("static inline void name_columns(const name_row *row, float *x) {\n")
    header.code("    for (int32_t j = 0; j < NAME_WIDTH; j++) x[j] = 0.0f;\n")
    for column, name in zip(table.columns, fields, strict=True):
        field = f"row->{name}"
        fill, missing = literal(np.float32(column.fill)), column.missing
        if column.kind == NUMBER:
            if column.is_scaled:
                origin, unit = (literal(np.float64(one)) for one in (column.origin, column.unit))
                field = f"({field} - {origin}) / {unit}"
            call = f"number(x, {column.number}, {field}, {fill}, {missing})"
        elif column.kind == DATE:
            parts = f"{header.name.upper()}_DATE_PARTS[{dates.index(column)}]"
            origin = literal(np.float64(column.origin))
            call = f"date(x, {column.number}, {field}, {origin}, {fill}, {missing}, {parts})"
        else:
            call = f"category(x, {field}, {1 + texts.index(column)}, {column.rest}, {missing})"
        header.parts.append(f"    {header.name}_{call};\n")
    for line in _statistic_calls(table, fields, texts):
        header.parts.append(f"    {line.replace('name_', f'{header.name}_')};\n")
    header.code("}\n")


def _statistic_calls(
    table: TableInput, fields: Sequence[str], texts: Sequence[TableColumn]
) -> list[str]:
    """Return the code of each key, and a call for each statistic."""
    lines, first = [], 0
    for k, key in enumerate(table.keys):
        field = f"row->{fields[key.column]}"
        if key.codes:
            place = 1 + texts.index(table.columns[key.column])
            lines.append(f"int64_t key_{k} = name_text_code({field}, {place}, {key.missing})")
        else:
            lines.append(f"int64_t key_{k} = name_number_code({field}, {first}, {key.missing})")
            first += key.numbers.size
    j = table.width - table.n_statistics
    for k, statistic in enumerate(table.statistics):
        code = f"key_{statistic.keys[0]}"
        if len(statistic.keys) > 1:
            second = statistic.keys[1]
            n_codes = table.keys[second].missing + 1
            code = f"name_pair_code({code}, key_{second}, {n_codes})"
        lines.append(f"name_statistic(x, {j}, {code}, {k})")
        j += statistic.rest.size
    return lines
