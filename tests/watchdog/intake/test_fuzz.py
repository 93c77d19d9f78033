"""Whatever is in a file: no crash, no hang, bounded memory, and what is good beside it is read."""

from __future__ import annotations

import pickle
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from watchdog.errors import UnusableInputError
from watchdog.intake import BLOCKS, DOCUMENTS, evidence_from_paths
from watchdog.intake.blocks import Block, Context
from watchdog.intake.documents import flight_recorder
from watchdog.intake.log_lines.table import KNOWN_LINES, LITERALS
from watchdog.intake.parts import Parts, who_by_file_name
from watchdog.intake.plain_pickle import PickleRefusedError, plain_pickle
from watchdog.intake.prefixes import Line, PrefixReader
from watchdog.intake.shell_text import read_script
from watchdog.intake.text import MAX_LINE_CHARS, clean_line
from watchdog.intake.times import find_moment

FUZZ = settings(
    max_examples=60,
    deadline=5_000,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
SAMPLES = {
    "pyspy": (
        "Process 8: ray::A.b\n"
        "Python v3.12\n"
        "\n"
        'Thread 8 (active+gil): "M"\n'
        "    f (a.py:1)\n"
        "        Locals:\n"
        "            x: 1\n"
    ),
    "pyspy_json": (
        '[{"pid": 1, "thread_id": 2, "thread_name": "M", "frames": [{"name": "f", "line": 1}]}]'
    ),
    "faulthandler": (
        "Fatal Python error: Abort\n"
        "\n"
        "Thread 0x01 (most recent call first):\n"
        '  File "a.py", line 1 in f\n'
    ),
    "traceback": (
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    f()\nValueError: x\n'
    ),
    "gdb": ('Thread 1 (Thread 0x7f0 (LWP 4) "p"):\n#0  0x00 in poll () from /lib/libc.so.6\n'),
    "pystack": (
        "Traceback for thread 3 (p) [Has the GIL] (most recent call last):\n"
        '    (C) File "???", line 0, in f (l.so)\n'
    ),
    "proc": ("Name:\tp\nState:\tD (disk sleep)\nPid:\t9\nCapEff:\t00000000a80425fb\nrchar: 1\n"),
    "top": ("    PID USER S TIME+ COMMAND\n  11 root D 1:22.10 sglang::scheduler_TP1\n"),
    "gpu": ("index, utilization.gpu [%], power.draw [W]\n3, 97 %, 120.5 W\n"),
    "ss": (
        "State Recv-Q Send-Q Local Peer\n"
        'ESTAB 7 0 10.0.0.1:29500 10.0.0.2:4 users:(("p",pid=9,fd=4))\n'
    ),
    "actors": (
        "ACTOR_ID CLASS_NAME STATE\n 0 03b2c1f4a7d94e5f8a6b7c8d01000000 FSDPActor DEAD 01 a-1 771\n"
    ),
    "ras": (
        "1 rank has launched up to operation 3: rank 4 -- GPU 3 managed by process 7 on node n\n"
    ),
    "pip": ("Package Version\n------- -------\ntorch 2.9.1\nray==2.54.0\n"),
    "env": ("NCCL_DEBUG=INFO\nMASTER_ADDR=a\nRANK=3\n127.0.0.1 localhost\nlo UP 127.0.0.1/8\n"),
    "script": (
        "#!/bin/bash\n"
        "A=(--x 1 --y)\n"
        "export B='q'\n"
        'python t.py ${A[@]} --z "$B" \\\n'
        " --w ${C:-3} && echo\n"
    ),
    "args": ("  lora_rank ...... 8\n  colocate ...... True\nNamespace(aa=1, bb=2, cc='x')\n"),
    "yaml": ("a:\n  b: 1\n  c: [1, 2]\n  d: &x {e: f}\n  g: *x\n"),
    "toml": ('a = 1\nb = "x"\n[c]\nd = true\n'),
    "runtime_env": ('{"env_vars": {"A": "1"}}'),
    "recorder": (
        '{"version": "2.10", "entries": [{"process_group": ["0", "d"], "profiling_name": '
        '"gloo:barrier"}], "pg_config": {"0": {"name": "0", "ranks": "[0, 1]"}}}'
    ),
    "evidence": (
        '{"schema_version": 1, "origin": "files", "processes": [{"key": "a", "role": "other"}]}'
    ),
    "log": (
        "(A pid=1, ip=1.1.1.1) [2026-05-05 10:00:01.2 actor_cell0_rank3] x.py:1 - Timer x"
        " start\n"
        "[default1]:[rank1]:[E412 20:30:49.1 a.cpp:1] [Rank 1] Watchdog caught\n"
        '3: "GET /pause HTTP/1.1" 200\n'
    ),
    "session": (
        "$ cat /proc/9/status\n"
        "State:\tS (sleeping)\n"
        "### rank 3\n"
        "==== [debug-pyspy] ts=1785705420 p\n"
    ),
}
sample = st.sampled_from(sorted(SAMPLES.values()))
junk = st.one_of(
    st.text(max_size=200), st.sampled_from(["\x00", "(" * 500, "\\\n", "[" * 400, "'"])
)


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """Samples cut, repeated, spliced, with junk between: close enough to be taken for real."""
    pieces = []
    for _ in range(draw(st.integers(1, 4))):
        text = draw(sample)
        start, end = sorted(draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        pieces.append(draw(st.sampled_from([text, text[:start], text[start:end], text[end:]])))
        pieces.append(draw(junk))
    return "".join(pieces) * draw(st.sampled_from([1, 1, 3]))


def write(folder: Path, data: bytes) -> Path:
    path = folder / "fuzzed"
    path.write_bytes(data)
    return path


@FUZZ
@given(data=st.binary(max_size=2_000))
def test_any_bytes_are_survived(tmp_path, data):
    with suppress(UnusableInputError):
        evidence_from_paths([write(tmp_path, data)])


@FUZZ
@given(text=mutations(), encoding=st.sampled_from(["utf-8", "utf-16", "latin-1"]))
def test_mutated_files_of_every_kind_are_survived(tmp_path, text, encoding):
    path = write(tmp_path, text.encode(encoding, "replace"))
    try:
        evidence = evidence_from_paths([path])
    except UnusableInputError:
        return
    assert len(evidence.processes) < 200
    assert all(len(event.text) <= 2_000 for event in evidence.log_events)


@FUZZ
@given(text=mutations())
def test_mutated_files_do_not_hide_the_good_one(tmp_path, text):
    write(tmp_path, text.encode("utf-8", "replace"))
    (tmp_path / "rank5.txt").write_text(
        'Process 77: ray::FSDPActor.x\n\nThread 77 (idle): "MainThread"\n    wait (q.py:3)\n'
    )

    evidence = evidence_from_paths([tmp_path])

    assert any(process.pid == 77 and process.stacks for process in evidence.processes)


@pytest.mark.parametrize("kind", DOCUMENTS, ids=lambda kind: kind.__name__.rsplit(".", 1)[-1])
@FUZZ
@given(text=mutations())
def test_every_document_parser_refuses_or_reads(kind, text):
    assert 0 <= kind.score(text) <= 1
    with suppress(ValueError, TypeError, KeyError, RecursionError, OverflowError):
        kind.parse(text, Context(file="f"), Parts())


@pytest.mark.parametrize("kind", BLOCKS, ids=lambda kind: kind.__name__.rsplit(".", 1)[-1])
@FUZZ
@given(text=mutations())
def test_every_block_parser_reads_what_it_opened_and_continued(kind, text):
    lines = text.split("\n")
    for index, line in enumerate(lines):
        if not kind.opens(line):
            continue
        block = Block(Line(line), index + 1, Context(file="f"), [line])
        for following in lines[index + 1 :]:
            if not kind.continues(following, block):
                break
            block.lines.append(following)
        kind.parse(block, Parts())


@FUZZ
@given(
    text=st.one_of(mutations(), st.text(max_size=300)),
    literal=st.sampled_from(LITERALS),
    slurm=st.booleans(),
)
def test_lines_of_any_content_are_taken_apart(text, literal, slurm):
    line = clean_line(f"{text[:150]}{literal}{text[150:]}")
    found = PrefixReader(slurm).read(line)
    assert found.text in line or found.repeated
    list(KNOWN_LINES.events(found.text))
    find_moment(line)


@FUZZ
@given(data=st.binary(max_size=400), protocol=st.sampled_from([b"\x80\x02", b"\x80\x04", b""]))
def test_any_bytes_as_a_pickle_are_refused_or_plain(data, protocol):
    with suppress(PickleRefusedError):
        plain_pickle(protocol + data)


plain = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.text(), st.floats()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=25,
)


@FUZZ
@given(value=plain)
def test_plain_data_survives_a_pickle_unchanged(value):
    assert repr(plain_pickle(pickle.dumps(value))) == repr(value)


@FUZZ
@given(value=st.dictionaries(st.sampled_from(["entries", "pg_config", "rank", "version"]), plain))
def test_any_flight_recorder_is_read_or_refused(value):
    with suppress(ValueError):
        flight_recorder.read_dump(value, Context(file="f"), Parts())


@FUZZ
@given(text=st.text(alphabet="$\\'\"{}[]()#=ab \n;&|-+:@", max_size=300))
def test_any_script_is_read_or_refused(text):
    with suppress(ValueError):
        read_script(text)


@FUZZ
@given(name=st.text(max_size=80))
def test_any_file_name_gives_hints_or_none(name):
    who_by_file_name(name)


@pytest.mark.parametrize(
    "line",
    [
        "(" * 100_000,
        "[" * 100_000,
        "a" * 100_000,
        " " * 100_000,
        "=" * 100_000,
        "1:" * 50_000,
        "\x1b[" * 50_000,
        "x\r" * 50_000,
        "Timer " * 20_000,
        "rank " * 20_000,
        '"GET /' * 20_000,
        "#0  " + "(" * 50_000,
        "Thread 1 (" + "idle" * 20_000,
        "    f" + " (" * 40_000,
        "a=" * 50_000,
        "a.b" * 50_000,
    ],
    ids=lambda line: line[:8].strip() or "spaces",
)
def test_no_line_takes_long_whatever_it_repeats(tmp_path, line):
    import time

    assert len(clean_line(line)) <= MAX_LINE_CHARS + 3
    path = write(tmp_path, f"{line}\n{line}".encode())
    started = time.process_time()
    with suppress(UnusableInputError):
        evidence_from_paths([path])
    # Linear work on 200 kB takes far less; quadratic work on them takes minutes.
    assert time.process_time() - started < 20
