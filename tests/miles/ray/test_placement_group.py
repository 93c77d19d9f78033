import pytest

pytest.importorskip("ray", exc_type=ImportError)

from miles.ray.placement_group import bundles
from miles.utils.arguments import parse_args

pytestmark = pytest.mark.ray
TWO_BY_TWO = ("--actor-num-nodes", "2", "--actor-num-gpus-per-node", "2")


def test_the_ranks_of_a_node_share_a_bundle_and_so_do_their_engines():
    args = parse_args([*TWO_BY_TWO, "--colocate"])

    assert bundles(args) == ([{"CPU": 2.0}, {"CPU": 2.0}], (0, 0, 1, 1))


def test_an_engine_over_several_ranks_is_where_its_first_rank_is():
    args = parse_args([*TWO_BY_TWO, "--colocate", "--rollout-num-gpus-per-engine", "2"])

    assert bundles(args)[1] == (0, 1)


def test_engines_on_devices_of_their_own_have_bundles_of_their_own():
    args = parse_args([*TWO_BY_TWO, "--rollout-num-gpus", "2"])

    assert bundles(args) == ([{"CPU": 2.0}, {"CPU": 2.0}, {"CPU": 1.0}, {"CPU": 1.0}], (2, 3))


@pytest.mark.parametrize(
    "flags", [("--debug-train-only",), ("--rollout-external-engine-addrs", "http://127.0.0.1:1")]
)
def test_nothing_is_reserved_for_engines_that_the_run_does_not_start(flags):
    assert bundles(parse_args([*TWO_BY_TWO, *flags])) == ([{"CPU": 2.0}, {"CPU": 2.0}], ())
