"""A language model behind an OpenAI-compatible server, asked only because the user gave its address."""

import hashlib
import ipaddress
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any

from relvec.baselines.likelihood import Likelihood
from relvec.errors import RelvecError
from relvec.hub.network import offline
from relvec.progress import progress_bar
from relvec.storage.cache import Cache

KEY_VARIABLES = ("RELVEC_API_KEY", "OPENAI_API_KEY")
LONGEST_PAUSE_SECONDS = 60.0
PROBE = "Paris is to France as Tokyo is to Japan"
NOT_OFFERED = (400, 404, 405, 415, 422, 501)


class _RefusalError(RelvecError):
    """The server answered, but not with what was asked for."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The key goes to the address that the user gave and to no other."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None


class Endpoint:
    """Posts JSON to `url` (such as http://localhost:8000/v1), tries again when the server is busy, keeps the answers.

    The key comes from RELVEC_API_KEY, else OPENAI_API_KEY; it is sent, and neither kept nor shown. With
    RELVEC_OFFLINE=1 only addresses of this machine are allowed.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        timeout_seconds: float = 60.0,
        retries: int = 5,
        pause_seconds: float = 1.0,
        parallel: int = 4,
        cache_folder: str | Path | None = None,
        show_progress: bool | None = None,
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise RelvecError(f"{url!r} is no address of a server; write it as http://localhost:8000/v1.")
        if parts.username or parts.password:
            raise RelvecError(f"The address of {parts.hostname} holds a password; set {KEY_VARIABLES[0]} instead.")
        is_local = _is_loopback(parts.hostname)
        if offline() and not is_local:
            raise RelvecError(
                f"The network is switched off, so {parts.hostname} cannot be asked; unset RELVEC_OFFLINE."
            )
        self.url = url.rstrip("/")
        self.model = model
        self._timeout_seconds = timeout_seconds
        self._retries = retries
        self._pause_seconds = pause_seconds
        self._parallel = parallel
        self._show_progress = show_progress
        self._cache = Cache(f"answers {self.fingerprint}", about=model, folder=cache_folder)
        # A proxy is no part of this machine.
        handlers: list[Any] = [_NoRedirect(), *([urllib.request.ProxyHandler({})] if is_local else [])]
        self._opener = urllib.request.build_opener(*handlers)

    @property
    def fingerprint(self) -> str:
        """A checksum of address and model name: what runs behind them cannot be seen."""
        return hashlib.sha256(repr((self.url, self.model)).encode()).hexdigest()

    def ask(self, path: str, bodies: Sequence[dict[str, Any]], read: Callable[[dict[str, Any]], Any]) -> list[Any]:
        """What `read` finds in the answer to each request; a request that was answered before is not sent again."""
        keys = [json.dumps([path, body], ensure_ascii=False, sort_keys=True) for body in bodies]
        body_of = dict(zip(keys, bodies, strict=True))
        found = self._cache.get_json(keys)
        missing = [key for key in body_of if key not in found]
        pool = ThreadPoolExecutor(self._parallel)
        try:
            answers = pool.map(lambda key: read(self._post(path, body_of[key])), missing)
            with progress_bar(len(missing), f"Asking {self.model}", unit="request", show=self._show_progress) as bar:
                for key, answer in zip(missing, answers, strict=True):
                    self._cache.add_json({key: answer})
                    found[key] = answer
                    bar.update()
        finally:
            pool.shutdown(cancel_futures=True)
        return [found[key] for key in keys]

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        address = f"{self.url}/{path}"
        headers = {"Content-Type": "application/json"}
        if key := _key():
            headers["Authorization"] = f"Bearer {key}"
        data = json.dumps({"model": self.model, **body}).encode()
        for attempt in range(self._retries + 1):
            request = urllib.request.Request(address, data=data, headers=headers, method="POST")
            wait: str | None = None
            try:
                with self._opener.open(request, timeout=self._timeout_seconds) as response:
                    answer = json.load(response)
                if isinstance(answer, dict):
                    return answer
                raise _RefusalError(
                    f"{address} answered with no JSON object; check that it speaks the OpenAI API.", 200
                )
            except urllib.error.HTTPError as error:
                problem = f"status {error.code}"
                wait = error.headers.get("Retry-After")
                with error:
                    if error.code == 501 or (error.code != 429 and error.code < 500):
                        raise _as_refusal(address, error) from error
            except json.JSONDecodeError as error:
                raise _RefusalError(
                    f"{address} answered with no JSON; check that it speaks the OpenAI API.", 200
                ) from error
            except (OSError, HTTPException) as error:
                problem = str(getattr(error, "reason", None) or error) or type(error).__name__
            if attempt < self._retries:
                time.sleep(_pause(wait, self._pause_seconds * 2**attempt))
        tries = f"{self._retries + 1} tries"
        raise RelvecError(f"{address} gave no answer in {tries} ({problem}); see that it runs, then start again.")


class Completions:
    """Likelihoods from a server that echoes a prompt with the log-probability of each of its tokens."""

    is_causal = True

    def __init__(self, endpoint: Endpoint, *, name: str = "") -> None:
        self.name = name or endpoint.model
        self._endpoint = endpoint

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"completions {self._endpoint.fingerprint}".encode()).hexdigest()

    def likelihoods(self, texts: Sequence[str]) -> list[Likelihood]:
        """One likelihood a text; the first token has none unless the server starts with a token of its own."""
        bodies = [
            # One new token, because some servers refuse to write none.
            {"prompt": text, "max_tokens": 1, "echo": True, "logprobs": 1, "temperature": 0}
            for text in texts
        ]
        return [Likelihood(*found) for found in self._endpoint.ask("completions", bodies, _echoed)]


class Chat:
    """Answers of a chat model."""

    def __init__(self, endpoint: Endpoint, *, name: str = "") -> None:
        self.name = name or endpoint.model
        self._endpoint = endpoint

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"chat {self._endpoint.fingerprint}".encode()).hexdigest()

    def answers(self, prompts: Sequence[str]) -> list[str]:
        """One answer a prompt."""
        bodies = [{"messages": [{"role": "user", "content": prompt}], "temperature": 0} for prompt in prompts]
        return self._endpoint.ask("chat/completions", bodies, _message)


def connect(endpoint: Endpoint, *, name: str = "") -> Completions | Chat:
    """Likelihoods if the server gives them (one request finds out), else its chat."""
    completions = Completions(endpoint, name=name)
    try:
        completions.likelihoods([PROBE])
    except _RefusalError as error:
        if error.status not in (*NOT_OFFERED, 200):
            raise
        return Chat(endpoint, name=name)
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
        raise _RefusalError(
            f"The server gives no log-probabilities of a prompt ({error}); ask it as a chat model instead.", 200
        ) from error
    return [sum(known), len(known)]


def _message(answer: dict[str, Any]) -> str:
    try:
        return str(answer["choices"][0]["message"]["content"] or "")
    except (KeyError, IndexError, TypeError) as error:
        raise _RefusalError(
            "The server's chat answer holds no message; check that it speaks the OpenAI API.", 200
        ) from error


def _as_refusal(address: str, error: urllib.error.HTTPError) -> _RefusalError:
    if error.code in (401, 403):
        return _RefusalError(f"{address} refused the key; set {KEY_VARIABLES[0]} to a valid one.", error.code)
    said = " ".join(error.read(2000).decode(errors="replace").split())[:200]
    if key := _key():
        said = said.replace(key, "***")
    return _RefusalError(
        f"{address} refused the request with status {error.code} ({said}); check address and model.", error.code
    )


def _key() -> str:
    return next((os.environ[name].strip() for name in KEY_VARIABLES if os.environ.get(name, "").strip()), "")


def _pause(wait: str | None, otherwise: float) -> float:
    """Seconds until the next try: what the server asks for, within reason."""
    try:
        seconds = float(wait) if wait is not None else otherwise
    except ValueError:
        seconds = otherwise
    return min(max(seconds, 0.0), LONGEST_PAUSE_SECONDS)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
