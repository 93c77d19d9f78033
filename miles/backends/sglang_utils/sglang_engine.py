"""The trainer's handle of one rollout engine."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

_FLUSH_TRIES = 60
_FLUSH_WAIT_S = 1.0


class EngineError(RuntimeError):
    """An engine refused a request, failed at it, or is gone; the message names all three."""


class SGLangEngine:
    """Speaks to one engine over HTTP. No request has a time limit, as in upstream.

    Attributes:
        index: The engine's number, from 0.
        address: `http://host:port`.
    """

    def __init__(
        self, address: str, index: int, *, _sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._sleep = _sleep
        self.address = address
        self.index = index

    def health(self) -> None:
        """Return once the engine has started up."""
        self._make_request("health")

    def pause_generation(self, mode: str) -> None:
        """Hold or abort what is being generated, and refuse more.

        Args:
            mode: `abort`, `retract` or `in_place`; see the engine's `GenerationGate`.
        """
        self._make_request("pause_generation", {"mode": mode})

    def continue_generation(self) -> None:
        """Generate again."""
        self._make_request("continue_generation")

    def flush_cache(self) -> None:
        """Drop cached prefixes, waiting up to a minute for running requests to end.

        Raises:
            TimeoutError: Requests were still running after the last try.
            EngineError: The engine is gone or failed.
        """
        for _ in range(_FLUSH_TRIES):
            status, reply = self._exchange("flush_cache", {}, b"")
            if status == 200:
                return
            if status != 503:
                raise self._error("flush_cache", status, reply)
            self._sleep(_FLUSH_WAIT_S)
        raise TimeoutError(f"engine {self.index}: cache not flushed after {_FLUSH_TRIES} tries")

    def update_weights_from_tensor(self, buckets: list[bytes], weight_version: int) -> None:
        """Send packed tensors; the engine checks their checksums before it takes them."""
        query = {"weight_version": weight_version}
        self._make_request("update_weights_from_tensor", query, b"".join(buckets))

    def init_weights_update_group(
        self, port: int, member: int, num_members: int, name: str, host: str = "127.0.0.1"
    ) -> None:
        """Have the engine join a weight group; returns when all members came."""
        query = {"port": port, "member": member, "num_members": num_members, "name": name}
        query["host"] = host
        self._make_request("init_weights_update_group", query)

    def update_weights_from_distributed(
        self, name: str, header: list[dict[str, Any]], weight_version: int
    ) -> None:
        """Have the engine receive the described tensors in a weight group, and check them."""
        query = {"name": name, "weight_version": weight_version}
        self._make_request("update_weights_from_distributed", query, json.dumps(header).encode())

    def update_weights_from_disk(self, path: str, weight_version: int) -> None:
        """Have the engine read packed tensors from a file, and check them."""
        query = {"path": path, "weight_version": weight_version}
        self._make_request("update_weights_from_disk", query)

    def load_lora_adapter_from_tensors(
        self, buckets: list[bytes], scaling: float, weight_version: int
    ) -> None:
        """Send tensors of the adapter; those of the last one that are not sent stay."""
        query = {"weight_version": weight_version, "scaling": scaling}
        self._make_request("load_lora_adapter_from_tensors", query, b"".join(buckets))

    def get_weight_version(self) -> int:
        """The version of the weights that came last."""
        return int(self._make_request("get_weight_version")["weight_version"])

    def release_memory_occupation(self, keep_on_host: bool) -> None:
        """Free the engine's weights, with or without a host copy."""
        self._make_request("release_memory_occupation", {"keep_on_host": int(keep_on_host)})

    def resume_memory_occupation(self) -> None:
        """Undo `release_memory_occupation`, as far as a host copy was kept."""
        self._make_request("resume_memory_occupation")

    def weights_checksum(self) -> dict[str, int]:
        """The CRC-32 of every tensor the engine holds, by name."""
        checksums: dict[str, int] = self._make_request("weights_checksum")["checksums"]
        return checksums

    def generate(self, input_ids: list[list[int]], max_new_tokens: int, seed: int) -> Any:
        """Sample; see the engine's `/generate`."""
        request = {"input_ids": input_ids, "max_new_tokens": max_new_tokens, "seed": seed}
        return self._make_request("generate", {}, json.dumps(request).encode())

    def _make_request(
        self, endpoint: str, query: Mapping[str, object] | None = None, body: bytes = b""
    ) -> Any:
        status, reply = self._exchange(endpoint, query or {}, body)
        if status != 200:
            raise self._error(endpoint, status, reply)
        return reply

    def _exchange(self, endpoint: str, query: Mapping[str, object], body: bytes) -> tuple[int, Any]:
        url = urlsplit(self.address)
        connection = http.client.HTTPConnection(str(url.hostname), url.port)
        try:
            connection.request("POST", f"/{endpoint}?{urlencode(query)}", body)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise EngineError(
                f"engine {self.index} at {self.address} is gone or does not speak HTTP: "
                f"/{endpoint} ended with {type(error).__name__}: {error}"
            ) from error
        finally:
            connection.close()

    def _error(self, endpoint: str, status: int, reply: Any) -> EngineError:
        reason = reply.get("error", reply) if isinstance(reply, dict) else reply
        return EngineError(
            f"engine {self.index} at {self.address} answered /{endpoint} with {status}: {reason}"
        )
