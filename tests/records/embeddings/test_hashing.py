"""The embedding by hashing: the same everywhere, near for texts that share words or their parts."""

import subprocess
import sys

import pytest

from tailrace.domains.records.search.embeddings.hashing import HashingModel, words_of
from tests.kit import ROOT
from tests.records.embeddings.test_transformer import cosine

MODEL = HashingModel(256)
RIVER = "Water levels of the river Sava at Radovljica"


def test_texts_that_share_words_or_their_parts_are_near() -> None:
    one, same_words, misspelt, other = MODEL.encode(
        [RIVER, "the river's water level", "Watre levels of the rivr Sawa", "Baroque church music"]
    )
    assert cosine(one, same_words) > 0.4
    assert cosine(one, misspelt) > 0.4
    assert abs(cosine(one, other)) < 0.2


def test_texts_are_compared_by_their_own_features() -> None:
    texts = {1: RIVER, 2: "Watre levels of the rivr Sawa", 3: "Baroque church music"}
    similar = MODEL.similarities("water levels", dict.fromkeys(texts, 0.5), lambda: texts)
    assert similar[1] > similar[2] > MODEL.least_similarity
    assert similar[3] == 0


def test_case_and_accents_do_not_matter() -> None:
    one, other = MODEL.encode(["ČESKÁ geologická mapa", "ceska Geologicka mapa"])
    assert cosine(one, other) == pytest.approx(1)


def test_every_process_gives_the_same_vector() -> None:
    code = f"""if True:
        from tailrace.domains.records.search.embeddings.hashing import HashingModel
        print(HashingModel(256).encode([{RIVER!r}])[0])"""
    printed = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True
    )
    assert printed.stdout.decode().strip() == str(MODEL.encode([RIVER])[0])


@pytest.mark.parametrize("text", ["", "  ", "!?", "a", "\x00", "\ud800"])
def test_a_text_without_words_is_zeros(text: str) -> None:
    assert MODEL.encode([text]) == [[0.0] * 256]


def test_long_texts_and_words_are_cut() -> None:
    assert words_of("x" * 1_000_000) == ["x" * 40]
