import threading

import pytest
import torch

from miles.backends.sglang_utils.sglang_engine import EngineError, SGLangEngine
from miles.models.transformer import (
    Transformer,
    TransformerConfig,
    initialise,
    log_probabilities,
)
from miles.rollout.generation_gate import NotServingError
from miles.utils.tensor_bucket import pack_tensors

PROMPTS = [[1, 2, 3, 4], [5, 6, 7, 8]]


@pytest.fixture
def model():
    model = Transformer(TransformerConfig(64, 64, 2, 16))
    initialise(model, seed=1)
    return model


@pytest.fixture
def served(start_engine):
    return start_engine()


@pytest.fixture
def engine(served):
    return SGLangEngine(served.address, 0, _sleep=lambda seconds: None)


def send(engine, model, version=1):
    engine.update_weights_from_tensor([pack_tensors(model.named_parameters())], version)


def test_it_does_not_generate_before_every_weight_arrived(engine, model):
    most = list(model.named_parameters())[1:]
    engine.update_weights_from_tensor([pack_tensors(most)], 1)

    with pytest.raises(EngineError, match=r"1 of 16 weights are missing, first embedding\.word"):
        engine.generate(PROMPTS, 2, seed=0)


def test_it_generates_with_the_weights_that_were_sent(engine, model):
    send(engine, model, version=7)

    reply = engine.generate(PROMPTS, 3, seed=0)

    tokens = torch.tensor(reply["tokens"])
    expected = log_probabilities(model(tokens), tokens)[:, -3:]
    assert torch.allclose(torch.tensor(reply["logprobs"]), expected, atol=1e-5)
    assert reply["weight_version"] == engine.get_weight_version() == 7


def test_an_adapter_is_added_to_its_module(engine, model):
    module = "decoder.layers.0.mlp.linear_fc1"
    down, up = torch.randn(4, 64), torch.randn(256, 4)
    send(engine, model)

    adapter = [(f"{module}.lora_A", down), (f"{module}.lora_B", up)]
    engine.load_lora_adapter_from_tensors([pack_tensors(adapter)], 0.5, 2)
    reply = engine.generate(PROMPTS, 3, seed=0)

    with torch.no_grad():
        model.get_submodule(module).weight += 0.5 * up @ down
    tokens = torch.tensor(reply["tokens"])
    expected = log_probabilities(model(tokens), tokens)[:, -3:]
    assert torch.allclose(torch.tensor(reply["logprobs"]), expected, atol=1e-5)


def test_a_paused_engine_refuses_to_generate_until_it_is_continued(engine, model):
    send(engine, model)
    engine.pause_generation("abort")

    with pytest.raises(EngineError, match="503: the engine is paused"):
        engine.generate(PROMPTS, 2, seed=0)
    engine.continue_generation()

    assert len(engine.generate(PROMPTS, 2, seed=0)["tokens"]) == 2


def test_a_damaged_tensor_is_refused_by_name_and_nothing_is_taken(engine, model):
    bucket = bytearray(pack_tensors(model.named_parameters()))
    bucket[-1] ^= 1

    with pytest.raises(EngineError, match=r"400: ChecksumMismatchError: output_layer\.weight"):
        engine.update_weights_from_tensor([bytes(bucket)], 1)

    assert engine.weights_checksum() == {}
    assert engine.get_weight_version() == 0


@pytest.mark.parametrize(
    ("name", "tensor", "reason"),
    [
        ("unknown.weight", torch.zeros(1), "unknown.weight is not a parameter of this model"),
        ("output_layer.weight", torch.zeros(2, 3), r"output_layer.weight has shape \(2, 3\)"),
        ("unknown.lora_A", torch.zeros(1), "unknown.lora_A is not an adapter of a module"),
    ],
)
def test_a_tensor_that_does_not_fit_the_model_is_refused_by_name(engine, name, tensor, reason):
    with pytest.raises(EngineError, match=f"400: ValueError: {reason}"):
        engine.update_weights_from_tensor([pack_tensors([(name, tensor)])], 1)


def test_released_weights_come_back_if_a_copy_was_kept(engine, model):
    send(engine, model)
    before = engine.weights_checksum()

    engine.release_memory_occupation(keep_on_host=True)
    assert engine.weights_checksum() == {}
    engine.resume_memory_occupation()

    assert engine.weights_checksum() == before


def test_released_weights_are_gone_if_no_copy_was_kept(engine, model):
    send(engine, model)

    engine.release_memory_occupation(keep_on_host=False)
    engine.resume_memory_occupation()

    with pytest.raises(EngineError, match="16 of 16 weights are missing"):
        engine.generate(PROMPTS, 2, seed=0)


class HeldRequest:
    """A request that waits in its first forward pass until `go`."""

    def __init__(self, engine, served):
        self._engine = engine
        self._sampling, self._go = threading.Event(), threading.Event()
        served.model.register_forward_pre_hook(self._hold)
        self._outcome = []
        self._thread = threading.Thread(target=self._generate, name="test-generate")
        self._thread.start()
        assert self._sampling.wait(30)

    def go(self):
        self._go.set()

    def outcome(self):
        self._thread.join(30)
        return self._outcome[0]

    def _hold(self, module, inputs):
        self._sampling.set()
        self._go.wait(30)

    def _generate(self):
        try:
            self._outcome.append(self._engine.generate(PROMPTS, 8, seed=0))
        except EngineError as error:
            self._outcome.append(str(error))


def test_abort_ends_what_is_being_generated(engine, served, model):
    send(engine, model)
    request = HeldRequest(engine, served)

    engine.pause_generation("abort")
    request.go()

    assert "503: generation was aborted" in request.outcome()
    engine.flush_cache()


def test_retract_holds_what_is_being_generated_and_lets_the_cache_be_flushed(engine, served, model):
    send(engine, model)
    request = HeldRequest(engine, served)

    engine.pause_generation("retract")
    request.go()
    engine.flush_cache()
    send(engine, model, version=2)
    engine.continue_generation()

    assert request.outcome()["weight_version"] == 2


def test_in_place_keeps_what_is_being_generated_and_refuses_to_flush(engine, served, model):
    send(engine, model)
    request = HeldRequest(engine, served)

    engine.pause_generation("in_place")
    request.go()
    with pytest.raises(TimeoutError, match="not flushed"):
        engine.flush_cache()
    engine.continue_generation()

    assert len(request.outcome()["tokens"]) == 2
    engine.flush_cache()


def test_flushing_is_tried_again_while_requests_run_and_then_given_up(served):
    tries = []

    def busy(query, body):
        raise NotServingError("1 requests are still running")

    served.endpoints["/flush_cache"] = busy
    engine = SGLangEngine(served.address, 0, _sleep=tries.append)

    with pytest.raises(TimeoutError, match="engine 0: cache not flushed after 60 tries"):
        engine.flush_cache()

    assert tries == [1.0] * 60


def test_a_failure_inside_an_endpoint_is_a_500_with_its_words(engine, served):
    def fail(query, body):
        raise RuntimeError("out of memory")

    served.endpoints["/pause_generation"] = fail

    with pytest.raises(EngineError, match="/pause_generation with 500: RuntimeError: out of mem"):
        engine.pause_generation("abort")


def test_an_unknown_endpoint_is_a_404(engine):
    with pytest.raises(EngineError, match="/nothing with 404: no endpoint /nothing"):
        engine._make_request("nothing")


def test_an_engine_that_is_gone_is_named():
    engine = SGLangEngine("http://127.0.0.1:9", 3)

    with pytest.raises(EngineError, match=r"engine 3 at http://127\.0\.0\.1:9 is gone"):
        engine.health()
