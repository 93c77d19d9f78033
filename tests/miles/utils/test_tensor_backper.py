import pytest
import torch

from miles.utils.tensor_backper import TensorBackuper, _compute_hash_dict


@pytest.fixture
def weights():
    return {"a": torch.ones(3), "b": torch.nn.Parameter(torch.zeros(2, 2).t())}


@pytest.fixture
def backuper(weights):
    return TensorBackuper.create(weights.items, single_tag=None)


@pytest.fixture
def noop(weights):
    return TensorBackuper.create(weights.items, single_tag="actor")


def test_kept_weights_outlive_a_change(weights, backuper):
    backuper.backup("actor")
    weights["a"].add_(1)

    assert backuper.get("actor")["a"].tolist() == [1, 1, 1]
    backuper.restore("actor")
    assert weights["a"].tolist() == [1, 1, 1]


def test_tags_are_kept_apart(weights, backuper):
    backuper.backup("ref")
    weights["a"].add_(1)
    backuper.backup("actor")
    backuper.copy("actor", "old_actor")
    weights["a"].add_(1)
    backuper.backup("actor")

    kept = {tag: backuper.get(tag)["a"][0].item() for tag in backuper.backup_tags}
    assert kept == {"ref": 1, "actor": 3, "old_actor": 2}


def test_a_second_backup_takes_no_second_copy(backuper):
    backuper.backup("actor")
    first = backuper.get("actor")["a"]
    backuper.backup("actor")

    assert backuper.get("actor")["a"] is first


@pytest.mark.parametrize("ask", ["get", "restore"])
def test_an_unknown_tag_is_an_error(backuper, noop, ask):
    for each in (backuper, noop):
        with pytest.raises(KeyError):
            getattr(each, ask)("ref")
        with pytest.raises(KeyError):
            getattr(each, ask)("actor")


def test_copies_are_readable_while_the_weights_are_paused(saver):
    with saver.region("default"):
        weights = {"a": torch.ones(3)}
        backuper = TensorBackuper.create(weights.items, single_tag=None)
        backuper.backup("actor")
    saver.pause()

    assert backuper.get("actor")["a"].tolist() == [1, 1, 1]
    saver.resume()
    backuper.restore("actor")
    assert weights["a"].tolist() == [1, 1, 1]


def test_the_noop_returns_the_live_weights(weights, noop):
    noop.backup("actor")

    assert noop.backup_tags == ["actor"]
    assert noop.get("actor")["a"] is weights["a"]
    noop.restore("actor")
    noop.copy("actor", "actor")


def test_the_noop_notices_weights_that_changed(weights, noop):
    noop.backup("actor")
    weights["a"][1] = 5

    with pytest.raises(RuntimeError, match=r"1 weights changed since backup.*first is a"):
        noop.get("actor")


def test_the_noop_knows_one_tag(noop):
    for act in (lambda: noop.backup("ref"), lambda: noop.copy("actor", "ref")):
        with pytest.raises(KeyError, match="backuper is off"):
            act()


def test_a_hash_is_equal_for_equal_bytes_of_any_dtype():
    def make():
        return {
            "nan": torch.tensor([float("nan")]),
            "scalar": torch.tensor(2.0),
            "bf16": torch.ones(3, dtype=torch.bfloat16),
            "bool": torch.tensor([True]),
            "empty": torch.empty(0),
        }

    assert _compute_hash_dict(make()) == _compute_hash_dict(make())
    assert _compute_hash_dict(make()) != _compute_hash_dict(make() | {"scalar": torch.tensor(3.0)})
