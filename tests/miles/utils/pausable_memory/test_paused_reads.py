import pytest

WAITS_IN = {"userfaultfd": "handle_userfault", "mprotect": "__do_sys_pause"}


@pytest.fixture
def start_reader(start_program, tmp_path):
    def start(backend, target="cpu", way="sum", *refused):
        arguments = (backend, target, str(tmp_path), way, *refused)
        program = start_program("paused_reader.py", *arguments)
        said = program.says()
        return program, said.split()[-1] if said else None

    return start


@pytest.mark.parametrize("target", ["cpu", "disk"])
@pytest.mark.parametrize("backend", ["userfaultfd", "mprotect"])
def test_a_read_waits_in_the_kernel_and_gets_the_old_bytes_on_resume(start_reader, backend, target):
    program, reader = start_reader(backend, target)

    assert program.waits_in(reader) == WAITS_IN[backend]
    program.tell("ping")
    assert program.says() == "pong"
    program.tell("resume")

    assert program.says() == f"{backend} [True]"
    assert program.process.wait(timeout=30) == 0


@pytest.mark.parametrize("backend", ["userfaultfd", "mprotect"])
def test_a_read_that_holds_the_gil_stops_every_python_thread(start_reader, backend):
    program, reader = start_reader(backend, "cpu", "tobytes")

    assert program.waits_in(reader) == WAITS_IN[backend]
    program.tell("ping")

    assert program.says(within_s=0.5) is None
    assert program.process.poll() is None


def test_auto_takes_userfaultfd_where_it_is_allowed(start_reader):
    program, reader = start_reader("auto")

    assert program.waits_in(reader) == WAITS_IN["userfaultfd"]


def test_auto_takes_mprotect_and_warns_once_where_userfaultfd_is_refused(start_reader):
    program, reader = start_reader("auto", "cpu", "sum", "userfaultfd")

    assert program.waits_in(reader) == WAITS_IN["mprotect"]
    warnings = program.end().splitlines()
    assert len(warnings) == 1
    assert "mprotect, which hides genuine segmentation faults" in warnings[0]
    assert "userfaultfd: Operation not permitted" in warnings[0]


@pytest.mark.parametrize("backend", ["auto", "userfaultfd", "mprotect"])
def test_a_refused_mechanism_is_an_error_that_names_it(start_reader, backend):
    program, _ = start_reader(backend, "cpu", "sum", "userfaultfd", "mprotect")

    assert program.process.wait(timeout=30) == 1
    error = program.end().splitlines()[-1]
    assert "PausingRefusedError: memory cannot be paused on this machine" in error
    tried = ("userfaultfd", "mprotect") if backend == "auto" else (backend,)
    for name in tried:
        assert f"{name}: Operation not permitted" in error
