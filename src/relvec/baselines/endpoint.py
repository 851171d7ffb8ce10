"""A language model behind an OpenAI-compatible server, asked only because the user gave its address."""

import hashlib
import ipaddress
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from relvec.baselines.baseline import Likelihood
from relvec.errors import RelvecError, needed_for
from relvec.hub.network import offline
from relvec.progress import progress_bar
from relvec.storage.cache import Cache

KEY_VARIABLES = ("RELVEC_API_KEY", "OPENAI_API_KEY")
PROBE = "Paris is to France as Tokyo is to Japan"


class _NotOfferedError(RelvecError):
    """The server answered, but does not offer what was asked for."""


class Endpoint:
    """Asks the server at `url` (such as http://localhost:8000/v1) through OpenAI's client, and keeps the answers.

    The key comes from RELVEC_API_KEY, else OPENAI_API_KEY. It is sent, and neither kept nor shown. Redirects are not
    followed. With RELVEC_OFFLINE=1 only addresses of this machine are allowed.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        timeout_seconds: float = 60.0,
        retries: int = 5,
        parallel: int = 4,
        cache_folder: str | Path | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise RelvecError(f"{url!r} is not the address of a server; write it as http://localhost:8000/v1.")
        if parts.username or parts.password:
            raise RelvecError(f"The address of {parts.hostname} holds a password; set {KEY_VARIABLES[0]} instead.")
        is_local = _is_loopback(parts.hostname)
        if offline() and not is_local:
            problem = f"The network is switched off, so {parts.hostname} cannot be asked"
            raise RelvecError(f"{problem}; unset RELVEC_OFFLINE.")
        with needed_for("Asking a server"):
            from openai import DefaultHttpxClient, OpenAI
        self.url, self.model = url.rstrip("/"), model
        self._parallel = parallel
        self._cache = Cache(f"answers {self.fingerprint}", about=f"answers of {model}", folder=cache_folder)
        # A proxy is no part of this machine.
        transport = DefaultHttpxClient(follow_redirects=False, trust_env=not is_local, timeout=timeout_seconds)
        self._key = next(filter(None, (os.environ.get(name, "").strip() for name in KEY_VARIABLES)), "none")
        self._client = OpenAI(base_url=self.url, api_key=self._key, max_retries=retries, http_client=transport)

    @property
    def fingerprint(self) -> str:
        """A checksum of address and model name: what runs behind them cannot be seen."""
        return hashlib.sha256(repr((self.url, self.model)).encode()).hexdigest()

    def ask(self, path: str, bodies: Sequence[dict[str, Any]], read: Callable[[dict[str, Any]], Any]) -> list[Any]:
        """What `read` finds in the answer to each request; a request that was answered before is not sent again."""
        keys = [json.dumps([path, body], ensure_ascii=False, sort_keys=True) for body in bodies]
        body_of = dict(zip(keys, bodies, strict=True))
        missing = self._cache.missing(keys)
        pool = ThreadPoolExecutor(self._parallel)
        try:
            answers = pool.map(lambda key: read(self._post(path, body_of[key])), missing)
            with progress_bar(len(missing), f"Asking {self.model}", unit="request") as bar:
                for key, answer in zip(missing, answers, strict=True):
                    self._cache.add_json({key: answer})
                    bar.update()
        finally:
            pool.shutdown(cancel_futures=True)
        found = self._cache.get_json(keys)
        return [found[key] for key in keys]

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The JSON object that the server answers with. The client waits and asks again where the server is busy."""
        from openai import APIConnectionError, APIStatusError

        address = f"{self.url}/{path}"
        try:
            answer = self._client.post(f"/{path}", body={"model": self.model, **body}, cast_to=object)
        except (APIConnectionError, APIStatusError) as error:
            status = error.status_code if isinstance(error, APIStatusError) else 0
            if status in (401, 403):
                raise RelvecError(f"{address} refused the key; set {KEY_VARIABLES[0]} to a valid one.") from error
            if not isinstance(error, APIStatusError) or status == 429 or (status >= 500 and status != 501):
                problem = f"{address} gave no answer ({f'status {status}' if status else error})"
                raise RelvecError(f"{problem}; see that it runs, then start again.") from error
            reason = " ".join(error.response.text.replace(self._key, "***").split())[:200]
            problem = f"{address} refused the request with status {status} ({reason})"
            raise _NotOfferedError(f"{problem}; check address and model.") from error
        except ValueError:  # not JSON
            answer = None
        if not isinstance(answer, dict):
            raise _NotOfferedError(f"{address} answered with no JSON object; check that it speaks the OpenAI API.")
        return answer


class ServedModel:
    """A language model of a server, asked for what its `kind` names."""

    kind: str

    def __init__(self, endpoint: Endpoint) -> None:
        self.name, self._endpoint = endpoint.model, endpoint
        self.fingerprint = hashlib.sha256(f"{self.kind} {endpoint.fingerprint}".encode()).hexdigest()


class Completions(ServedModel):
    """Likelihoods from a server that echoes a prompt with the log-probability of each of its tokens."""

    kind = "completions"

    def likelihoods(self, texts: Sequence[str]) -> list[Likelihood]:
        """One likelihood a text; the first token has none unless the server starts with a token of its own."""
        bodies = [
            # One new token, because some servers refuse to write none.
            {"prompt": text, "max_tokens": 1, "echo": True, "logprobs": 1, "temperature": 0}
            for text in texts
        ]
        return [Likelihood(*found) for found in self._endpoint.ask("completions", bodies, _echoed)]


class Chat(ServedModel):
    """Answers of a chat model."""

    kind = "chat"

    def answers(self, prompts: Sequence[str]) -> list[str]:
        """One answer a prompt."""
        bodies = [{"messages": [{"role": "user", "content": prompt}], "temperature": 0} for prompt in prompts]
        return self._endpoint.ask("chat/completions", bodies, _message)


def connect(endpoint: Endpoint) -> Completions | Chat:
    """Likelihoods if the server gives them (one request finds out), else its chat."""
    completions = Completions(endpoint)
    try:
        completions.likelihoods([PROBE])
    except _NotOfferedError:
        return Chat(endpoint)
    return completions


def _echoed(answer: dict[str, Any]) -> list[float]:
    """Summed log-probability and number of the prompt's tokens."""
    try:
        listed = answer["choices"][0]["logprobs"]["token_logprobs"]
        prompt_tokens = int((answer.get("usage") or {}).get("prompt_tokens") or len(listed) - 1)
        # Some servers ignore `echo` in silence and list the written token only.
        if prompt_tokens < 2 or len(listed) < prompt_tokens:
            raise ValueError("the prompt's tokens are not listed")
        known = [float(value) for value in listed[:prompt_tokens] if value is not None]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        problem = f"The server gives no log-probabilities of a prompt ({error})"
        raise _NotOfferedError(f"{problem}; ask it as a chat model instead.") from error
    return [sum(known), len(known)]


def _message(answer: dict[str, Any]) -> str:
    try:
        return str(answer["choices"][0]["message"]["content"] or "")
    except (KeyError, IndexError, TypeError) as error:
        raise _NotOfferedError("The chat answer holds no message; check that it speaks the OpenAI API.") from error


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
