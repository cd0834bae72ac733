"""What a column of texts is: how many words they have."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.data.table.kinds import _mean_words
from polyplane.data.table.texts import strings_of
from tests.examples import examples


@given(texts=st.lists(st.text("ab  \t\n\f\r\x0b\xa0\x1c"), min_size=1, max_size=8))
@settings(deadline=None, max_examples=examples(200))
def test_words_are_what_white_space_of_ascii_parts(texts):
    texts = [text.strip() for text in texts]  # as those of a column are
    n_between = sum(len(re.findall(r"[\t\n\f\r ]+", text)) for text in texts)
    assert _mean_words(strings_of(texts)) == 1 + n_between / len(texts)
