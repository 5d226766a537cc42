"""Control characters of any text are shown escaped; other text stays as it is."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.columns import Columns
from rich.panel import Panel
from rich.progress import Progress, TextColumn
from rich.table import Table
from rich.text import Text

import aromatch as am
from aromatch._utils.printable import print_lines, printable, to_json
from aromatch._utils.terminal import Terminal

# In words rather than as a pattern, for an oracle that does not share its mistakes.
BIDIRECTIONAL = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
ANY_TEXT = st.text(st.characters(exclude_categories=()))
READABLE = ["naïve café", "日本語\u3000テキスト", "שלום עולם\u200f", "नमस्ते\u200d", "👩\u200d🔬 🏴󠁧󠁢󠁥󠁮󠁧󠁿", "a\u00a0b", "\\x1b"]


def is_control(character):
    return (
        unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
        or unicodedata.bidirectional(character) in BIDIRECTIONAL
    )


@given(ANY_TEXT)
def test_no_control_character_is_left_and_the_other_characters_stay(text):
    shown = printable(text)
    assert not any(map(is_control, shown))
    escapes = {one: one.encode("unicode_escape").decode() for one in text if is_control(one)}
    assert shown == "".join(escapes.get(one, one) for one in text)
    assert printable(shown) == shown


@pytest.mark.parametrize("text", READABLE)
def test_accents_scripts_and_emoji_stay_readable(text):
    assert printable(text) == text
    assert text.replace("\\", "\\\\") in to_json([text])


@given(st.recursive(ANY_TEXT, lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner)))
def test_json_is_lossless_and_has_no_control_character(value):
    for indent in (None, 2):
        text = to_json(value, indent=indent)
        assert not any(map(is_control, text.replace("\n", "") if indent else text))
        assert json.loads(text.encode()) == json.loads(json.dumps(value))


def renderables(text):
    table = Table(text, title=text)
    table.add_row(text)
    table.add_row(Text(text))
    bar = Progress(TextColumn("{task.description}", markup=False))
    bar.add_task(text)
    return [text, Text(text), table, Panel(Text(text)), Columns([Panel(text)]), bar.get_renderable()]


CONTROLS = [chr(code) for code in range(0x110000) if is_control(chr(code)) and not 0xD800 <= code < 0xE000]


@pytest.mark.parametrize("character", [*CONTROLS, "\udcff"])
def test_nothing_that_is_printed_commands_the_terminal(capsys, character):
    for one in renderables(f"[bold]a{character}b:smile:"):
        Terminal().print(one)
    print_lines(f"a{character}b")
    print_lines(f"a{character}b", to_stderr=True)
    found = capsys.readouterr()
    assert not any(map(is_control, (found.out + found.err).replace("\n", "")))
    assert "[bold]a" in found.out
    assert ":smile:" in found.out


def test_an_explanation_shows_names_of_features_escaped():
    model = am.DiagonalAROMA().fit_triplets([[0, 1, 2]], [[1.0, 0], [0, 1], [1, 1]])
    shown = str(am.explain(model, [1.0, 0], [0, 1.0], query_names=["\x1b[31mred", "b"], object_names=["c\u202e", "d"]))
    assert r"\x1b[31mred x d" in shown
    assert not any(map(is_control, shown.replace("\n", "")))
