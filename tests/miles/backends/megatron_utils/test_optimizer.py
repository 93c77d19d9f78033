import torch

from miles.backends.megatron_utils.optimizer import Adam, GradientDescent, _zeros_on_disk


def adam(like, make=torch.zeros_like):
    return Adam(0.1, make(like), make(like))


def test_the_first_step_of_adam_is_the_learning_rate_against_each_gradient():
    parameters = torch.tensor([1.0, 1.0, 1.0])

    adam(parameters).move(parameters, torch.tensor([5.0, -0.01, 0.0]))

    assert torch.allclose(parameters, torch.tensor([0.9, 1.1, 1.0]), atol=1e-5)


def test_adam_finds_the_minimum_of_a_parabola():
    parameters = torch.tensor([3.0, -2.0])
    rule = adam(parameters)

    for _ in range(300):
        rule.move(parameters, 2 * parameters)

    assert parameters.abs().max() < 0.05


def test_state_on_disk_gives_the_same_steps_and_leaves_no_file(tmp_path):
    in_memory, on_disk = torch.ones(1000), torch.ones(1000)
    gradients = torch.randn(5, 1000)
    rules = (
        adam(in_memory),
        adam(on_disk, lambda like: _zeros_on_disk(like, str(tmp_path / "new"))),
    )

    for each in gradients:
        rules[0].move(in_memory, each)
        rules[1].move(on_disk, each)

    assert torch.equal(in_memory, on_disk)
    assert list((tmp_path / "new").iterdir()) == []


def test_gradient_descent_moves_by_rate_times_gradient():
    parameters = torch.tensor([1.0])

    GradientDescent(0.5).move(parameters, torch.tensor([2.0]))

    assert parameters.tolist() == [0.0]
