"""A launch is read from what people have: a command, a script, arguments, variables."""

from __future__ import annotations

import json
import os

import pytest
from click.testing import CliRunner

from watchdog.cli import group
from watchdog.errors import UnusableInputError
from watchdog.static_checks.host import this_host
from watchdog.static_checks.reading import read_launch

HAZARD = ("--colocate", "--offload-train-target", "disk", "--disable-weights-backuper")


def check(*arguments):
    return CliRunner().invoke(group, ["check", *map(str, arguments)])


def names(result):
    return {hazard["check"] for hazard in json.loads(result.stdout)["hazards"]}


def test_a_command_behind_dashes_is_checked_and_not_started(tmp_path):
    program = tmp_path / "train.py"
    program.write_text("raise SystemExit('started')")

    result = check("--json", "--no-installed", "--", "python", program, *HAZARD)

    assert names(result) == {"disk-target-without-backuper"}
    assert result.exit_code == 0


def test_strict_exits_with_1_on_a_certain_hazard_and_with_0_on_a_suspicion():
    suspect = ("--lora-rank", "8", "--colocate", "--disable-weights-backuper")

    assert check("--strict", "--no-installed", "--", "python", "train.py", *HAZARD).exit_code == 1
    assert check("--strict", "--no-installed", "--", "python", "train.py", *suspect).exit_code == 0


def test_options_of_the_launch_are_its_own():
    result = check("--no-installed", "--", "python", "train.py", "--json", "--strict")

    assert "no hazard known in 2 flags" in result.stdout


def test_a_script_is_read_with_its_variables_and_exports(tmp_path):
    script = tmp_path / "run.sh"
    script.write_text(
        "#!/bin/bash\nexport GLOO_SOCKET_IFNAME=^lo\n"
        f'ARGS=({" ".join(HAZARD)})\npython train.py "${{ARGS[@]}}"\n'
    )

    wanted = {"gloo-interface-not-a-name", "disk-target-without-backuper"}
    assert names(check("--json", "--no-installed", script)) == wanted
    assert names(check("--json", "--no-installed", "--", "bash", script)) == wanted


def test_arguments_as_json_and_variables_of_a_file_are_read(tmp_path):
    arguments, variables = tmp_path / "args.json", tmp_path / "env"
    arguments.write_text(
        json.dumps({"offload_train_target": "disk", "enable_weights_backuper": False})
    )
    variables.write_text("GLOO_SOCKET_IFNAME=eth0,eth1\n")

    result = check("--json", "--no-installed", "--args-json", arguments, "--env-file", variables)

    assert names(result) == {"gloo-interface-not-a-name", "disk-target-without-backuper"}


def test_a_runtime_environment_is_an_environment_file(tmp_path):
    file = tmp_path / "runtime_env.json"
    file.write_text(json.dumps({"env_vars": {"GLOO_SOCKET_IFNAME": "^lo"}}))

    assert names(check("--json", "--no-installed", "--env-file", file)) == {
        "gloo-interface-not-a-name"
    }


@pytest.mark.parametrize("text", ["", "just words\nof prose\n", "{"])
def test_a_file_without_arguments_is_unusable(tmp_path, text):
    file = tmp_path / "file.json"
    file.write_text(text)

    with pytest.raises(UnusableInputError, match=r"file\.json"):
        read_launch([str(file)])


def test_without_a_launch_it_is_a_usage_error():
    assert check().exit_code == 2


def test_what_is_installed_here_counts_unless_it_is_elsewhere():
    here = read_launch(["python", "train.py", "--x", "1"], environ={"NCCL_DEBUG": "INFO"})
    elsewhere = read_launch(["python", "train.py", "--x", "1"], installed=False)

    assert here.evidence.versions["python"]
    assert here.variable("NCCL_DEBUG") == "INFO"
    assert here.host is not None
    assert (elsewhere.evidence.versions, elsewhere.host) == ({}, None)


def test_a_secret_in_the_command_is_shown_nowhere(tmp_path):
    file = tmp_path / "env"
    file.write_text("WANDB_API_KEY=abcdef0123456789\n")

    launch = read_launch(
        ["python", "train.py", "--wandb-key", "s3cr3t-value"], env_files=[file], installed=False
    )

    assert "s3cr3t-value" not in str(launch)
    assert "abcdef0123456789" not in str(launch)


def test_this_machine_can_be_read(tmp_path):
    host = this_host({"HOME": str(tmp_path)})

    assert host.ephemeral_ports[0] < host.ephemeral_ports[1]
    assert host.lock_files == ()


@pytest.mark.parametrize("what", ["runn.sh", "/nope", "."])
def test_what_is_no_file_and_no_command_is_refused(what):
    result = check("--strict", "--no-installed", what)

    assert result.exit_code == 2
    assert str(what) in result.stderr
    assert "launch script" in result.stderr


def test_a_missing_script_with_arguments_is_refused():
    assert check("--no-installed", "--", "runn.sh", "--colocate").exit_code == 2


def test_strict_says_that_a_suspect_passes_and_strict_suspect_does_not_let_it():
    words = ("--no-installed", "--", "python", "train.py", "--lora-rank", "8", "--colocate",
             "--disable-weights-backuper")  # fmt: skip

    strict, stricter = check("--strict", *words), check("--strict-suspect", *words)

    assert (strict.exit_code, stricter.exit_code) == (0, 1)
    assert "--strict-suspect" in strict.stdout
    assert "decides" in strict.stdout


def test_a_flag_misspelt_by_a_letter_is_told():
    result = check("--no-installed", "--", "python", "train.py", "--lora-rnk", "8", "--colocate")

    assert "--lora-rnk is no flag known here: --lora-rank?" in result.stdout


def test_flags_of_which_no_check_knows_anything_are_not_called_checked():
    result = check("--no-installed", "--", "python", "train.py", "--some-knob", "8")

    assert "None of the flags is known to any check" in result.stdout


def test_one_flag_is_counted_in_the_singular():
    result = check("--no-installed", "--", "python", "train.py", "--colocate")

    assert "no hazard known in 1 flag and 0 variables" in result.stdout


@pytest.mark.parametrize("option", [["--env-file"], ["--args-json"], []])
@pytest.mark.parametrize("kind", ["device", "pipe", "huge"])
def test_no_device_pipe_or_huge_file_is_read(tmp_path, option, kind):
    path = tmp_path / "given"
    if kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        with path.open("wb") as file:
            file.truncate(2**40)

    result = check(*option, path)

    assert result.exit_code == 2, result.output
    assert "not a regular file" in result.output or "larger than" in result.output


def test_a_binary_file_is_no_launch(tmp_path):
    file = tmp_path / "bin"
    file.write_bytes(b"\x7fELF\x00 --colocate --lora-rank 8 \xff\xfe" + bytes(range(256)) * 8)

    result = check("--no-installed", file)

    assert result.exit_code == 2
    assert "bin: is binary" in result.stderr
