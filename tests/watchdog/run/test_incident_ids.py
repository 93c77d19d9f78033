import pytest

from watchdog.blackbox.reading import read_blackbox
from watchdog.blackbox.writing import BlackBox
from watchdog.incident.folder import IncidentFolder
from watchdog.recording.recorder import Recorder
from watchdog.run.incident_ids import incident_id, section_name, slug

HOSTILE = ("../../../escaped", "/tmp/abs/x", "a/b", "n" * 400, "nul\0name", "new\nline \x1b[31mred",
           "sur\ud800gate", "", None, 7, ".", "..", "é" * 300, "-rf", "a b")  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_any_name_of_a_section_gives_one_folder_in_the_run(name, tmp_path):
    incident = incident_id(section_name(name), 1)
    folder = IncidentFolder(tmp_path / "run", incident, tmp_path / "substitute")

    written = folder.write("report.md", "text")

    assert written.parent.parent == tmp_path / "run" / "incidents"
    assert len(incident) <= 80


def test_a_plain_name_is_kept_as_it_is():
    assert incident_id(section_name("weight_sync"), 3) == "weight_sync-0003"
    assert incident_id(section_name("lora.sync-2"), 12) == "lora.sync-2-0012"


def test_names_that_are_changed_stay_apart_and_a_slug_stays_itself():
    names = ("a/b", "a b", "a-b", "a//b", "n" * 400, "n" * 401, "é" * 300, "é" * 301)
    slugs = [slug(section_name(name)) for name in names]

    assert len(set(slugs)) == len(names)
    assert [slug(one) for one in slugs] == slugs


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_the_black_box_holds_the_name_whole(name, tmp_path):
    box = BlackBox.create(tmp_path / "0.blackbox", {})
    section = Recorder(box).begin_section(name, {})

    reading = read_blackbox(tmp_path / "0.blackbox")

    assert reading.section == section.name == section_name(name)
