"""One rollout engine: `python -m miles.rollout.engine_server`, with SGLang's HTTP endpoints.

Ends by itself when the process that started it does, however that one ends.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import socket
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import torch
from torch import Tensor

from miles.models.transformer import TransformerConfig
from miles.rollout.engine_model import EngineModel
from miles.rollout.generation_gate import GenerationGate, NotServingError
from miles.utils.orphans import die_with_parent
from miles.utils.tensor_bucket import check, checksum, empty_tensor, unpack_tensors
from miles.utils.weight_group import WeightGroup

logger = logging.getLogger(__name__)

Reply = dict[str, Any]


class Engine:
    """What the endpoints do. Each takes the URL's query and the body, and returns JSON."""

    def __init__(self, model: EngineModel) -> None:
        self._model = model
        self._gate = GenerationGate()
        self._weight_groups: dict[str, WeightGroup] = {}
        self.endpoints: dict[str, Callable[[dict[str, str], bytes], Reply]] = {
            "/health": self._health,
            "/generate": self._generate,
            "/pause_generation": self._pause_generation,
            "/continue_generation": self._continue_generation,
            "/flush_cache": self._flush_cache,
            "/update_weights_from_tensor": self._update_weights_from_tensor,
            "/update_weights_from_disk": self._update_weights_from_disk,
            "/update_weights_from_distributed": self._update_weights_from_distributed,
            "/init_weights_update_group": self._init_weights_update_group,
            "/load_lora_adapter_from_tensors": self._load_lora_adapter_from_tensors,
            "/get_weight_version": self._get_weight_version,
            "/release_memory_occupation": self._release_memory_occupation,
            "/resume_memory_occupation": self._resume_memory_occupation,
            "/weights_checksum": self._weights_checksum,
        }

    def _health(self, query: dict[str, str], body: bytes) -> Reply:
        return {"paused": self._gate.is_paused}

    def _generate(self, query: dict[str, str], body: bytes) -> Reply:
        request = json.loads(body)
        prompts = torch.tensor(request["input_ids"])
        with self._gate.request():
            tokens, scores = self._model.generate(
                prompts, request["max_new_tokens"], request["seed"], self._gate
            )
        version = self._model.weight_version
        return {"tokens": tokens.tolist(), "logprobs": scores.tolist(), "weight_version": version}

    def _pause_generation(self, query: dict[str, str], body: bytes) -> Reply:
        self._gate.pause(query.get("mode", "abort"))
        return {}

    def _continue_generation(self, query: dict[str, str], body: bytes) -> Reply:
        self._gate.open()
        return {}

    def _flush_cache(self, query: dict[str, str], body: bytes) -> Reply:
        # As the real server: refused while requests are running, so the client tries again.
        if self._gate.num_running:
            raise NotServingError(f"{self._gate.num_running} requests are still running")
        return {}

    def _update_weights_from_tensor(self, query: dict[str, str], body: bytes) -> Reply:
        return self._take(list(unpack_tensors(body)), query)

    def _update_weights_from_disk(self, query: dict[str, str], body: bytes) -> Reply:
        return self._take(list(unpack_tensors(Path(query["path"]).read_bytes())), query)

    def _init_weights_update_group(self, query: dict[str, str], body: bytes) -> Reply:
        store = WeightGroup.connect(int(query["port"]), query.get("host", "127.0.0.1"))
        self._weight_groups[query["name"]] = WeightGroup(
            query["name"], store, int(query["member"]), int(query["num_members"])
        )
        return {}

    def _update_weights_from_distributed(self, query: dict[str, str], body: bytes) -> Reply:
        header = json.loads(body)
        tensors = [(entry["name"], empty_tensor(entry)) for entry in header]
        # All are received before one is refused: the sender waits for each receiver.
        for _, tensor in tensors:
            self._weight_groups[query["name"]].broadcast(tensor)
        for entry, (_, tensor) in zip(header, tensors, strict=True):
            check(entry, checksum(tensor))
        return self._take(tensors, query)

    def _take(self, named_tensors: list[tuple[str, Tensor]], query: dict[str, str]) -> Reply:
        # Complete and checked by now: of a damaged request nothing is taken.
        self._model.load(named_tensors)
        self._model.weight_version = int(query["weight_version"])
        return {}

    def _load_lora_adapter_from_tensors(self, query: dict[str, str], body: bytes) -> Reply:
        self._model.load_adapter(list(unpack_tensors(body)), float(query["scaling"]))
        self._model.weight_version = int(query["weight_version"])
        return {}

    def _get_weight_version(self, query: dict[str, str], body: bytes) -> Reply:
        return {"weight_version": self._model.weight_version}

    def _release_memory_occupation(self, query: dict[str, str], body: bytes) -> Reply:
        self._model.release(keep_on_host=query.get("keep_on_host") == "1")
        return {}

    def _resume_memory_occupation(self, query: dict[str, str], body: bytes) -> Reply:
        self._model.restore()
        return {}

    def _weights_checksum(self, query: dict[str, str], body: bytes) -> Reply:
        return {"checksums": self._model.checksums()}


class _Handler(BaseHTTPRequestHandler):
    engine: Engine  # set by `http_server`, the same for every request
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, reply = self._outcome(url.path, dict(parse_qsl(url.query)), body)
        if status != 200:
            logger.warning("%s answered %d: %s", url.path, status, reply["error"])
        data = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _outcome(self, path: str, query: dict[str, str], body: bytes) -> tuple[int, Reply]:
        endpoint = self.engine.endpoints.get(path)
        if endpoint is None:
            return 404, {"error": f"no endpoint {path}"}
        try:
            return 200, endpoint(query, body)
        except NotServingError as error:
            return 503, {"error": str(error)}
        except (ValueError, KeyError) as error:
            return 400, {"error": f"{type(error).__name__}: {error}"}
        except Exception as error:
            logger.exception("%s failed", path)
            return 500, {"error": f"{type(error).__name__}: {error}"}

    def log_message(self, format: str, *args: object) -> None:
        logger.debug(format, *args)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        # Endpoints report their own errors: what comes here is a client that hung up.
        logger.info("client %s is gone: %s", client_address, sys.exc_info()[1])


def http_server(engine: Engine, listener: socket.socket) -> ThreadingHTTPServer:
    """Bind an engine to a listening socket; `serve_forever` of the result serves it."""
    handler = type("Handler", (_Handler,), {"engine": engine})
    server = _Server(listener.getsockname(), handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    return server


def main() -> None:
    """Serve until the process is told to end."""
    parser = argparse.ArgumentParser(description="One rollout engine.")
    parser.add_argument("--engine-index", type=int, required=True)
    parser.add_argument("--port", type=int, required=True, help="0 = any free port")
    parser.add_argument("--listen-fd", type=int, help="an inherited socket, bound to the port")
    parser.add_argument("--parent-pid", type=int, help="end when this process does")
    for name in ("vocab-size", "hidden-size", "num-layers", "seq-length"):
        parser.add_argument(f"--{name}", type=int, required=True)
    args = parser.parse_args()
    if args.parent_pid is not None:
        die_with_parent(args.parent_pid)
    # Nothing to save: weights come from the trainer.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    logging.basicConfig(format=f"engine {args.engine_index}: %(message)s", stream=sys.stderr)
    torch.set_num_threads(1)
    config = TransformerConfig(args.vocab_size, args.hidden_size, args.num_layers, args.seq_length)
    if args.listen_fd is not None:
        listener = socket.socket(fileno=args.listen_fd)
    else:
        listener = socket.create_server(("127.0.0.1", args.port))
    http_server(Engine(EngineModel(config)), listener).serve_forever()


if __name__ == "__main__":
    main()
