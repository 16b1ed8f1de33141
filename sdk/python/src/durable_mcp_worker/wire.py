"""The side of a worker that speaks to the server, on a thread and event loop of its own, so that a handler that blocks
everything neither loses its lease nor takes calls that nobody knows of. Runs no handlers.

It registers, keeps a claim parked while there are free slots, sends heartbeats, and offers each outcome until the
server takes or refuses it. What may be repeated is repeated with back-off.
"""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import json
import logging
import random
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

from .address import ServerAddress
from .call import UNSET, Call
from .errors import CallCancelled, NotWelcome
from .link import Away, Link, Problem
from .results import encode, failure

log = logging.getLogger("durable_mcp_worker")

CLAIM_WAIT_MS = 20_000
# A batch of results: so many, or so many characters, whichever is first.
BATCH_RESULTS = 64
BATCH_CHARS = 1 << 20
# Progress and checkpoints that come fast are sent together.
HEARTBEAT_GAP_S = 0.05
REQUEST_TIMEOUT_S = 30.0
GOODBYE_TIMEOUT_S = 3.0


class Wire:
    """The conversation with one server. Public methods may be called from any thread."""

    def __init__(
        self,
        address: ServerAddress,
        registration: dict[str, Any],
        grace_s: float,
        deliver: Callable[[list[Call]], None],
        ended: Callable[[BaseException | None], None],
    ) -> None:
        self._address = address
        self._registration = encode(registration)
        self._leaving = encode({**registration, "tools": []})
        self._worker_id: str = registration["worker_id"]
        self._slots: int = registration["slots"]
        self._grace_s = grace_s
        self._deliver = deliver
        self._ended = ended
        self._link: Link
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="durable-mcp-wire", daemon=True)
        # Calls whose lease is ours, by lease token, until the server has taken what came of them.
        self._held: dict[str, Call] = {}
        self._running = 0
        self._outbox: collections.deque[Call] = collections.deque()
        self._sending = 0
        # What handlers ended with, until this thread has seen it.
        self._finished: collections.deque[Call] = collections.deque()
        self._is_woken = False
        self._generation = 0
        self._heartbeat_s = 10.0
        self._lease_ttl_s = 30.0
        self._claim_wait_ms = CLAIM_WAIT_MS
        self._claim_max = 64
        self._is_away = False
        self._is_draining = False
        self._drain_asked = asyncio.Event()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._mail = asyncio.Event()
        self._fewer = asyncio.Event()
        self._registering = asyncio.Lock()

    # What handlers and the worker call.

    def start(self) -> None:
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def drain(self) -> None:
        """Claims no more, waits for what runs within the grace time, deregisters and ends."""
        self._soon(lambda: self._drain_asked.set())

    def finish(self, call: Call) -> None:
        """The handler ended; `call.outcome` is what is to be sent, or `None` for nothing."""
        self._finished.append(call)
        if not self._is_woken:
            self._is_woken = True
            self._soon(self._collect)

    def nudge(self) -> None:
        """A call has progress or a checkpoint for the next heartbeat."""
        self._soon(lambda: self._news.set())

    def store_step(self, call: Call, name: str, text: str) -> concurrent.futures.Future[Any]:
        """Stores a step's result; the future has what is stored, which may be an earlier result."""
        return asyncio.run_coroutine_threadsafe(self._store_step(call, name, text), self._loop)

    def _soon(self, what: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(what)
        except RuntimeError:
            # The conversation is over; what a late handler brings has nobody to go to.
            log.debug("the worker has ended")

    # The thread.

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        error: BaseException | None = None
        try:
            self._loop.run_until_complete(self._converse())
        except BaseException as problem:
            error = problem
        finally:
            # Steps of handlers that were given up.
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            if left:
                self._loop.run_until_complete(asyncio.wait(left, timeout=GOODBYE_TIMEOUT_S))
            self._loop.close()
            self._ended(error)

    async def _converse(self) -> None:
        self._link = Link(self._address)
        loops: list[asyncio.Task[None]] = []
        try:
            drain_asked = asyncio.ensure_future(self._drain_asked.wait())
            first = asyncio.ensure_future(self._register(0, is_first=True))
            await asyncio.wait({first, drain_asked}, return_when=asyncio.FIRST_COMPLETED)
            if not first.done():
                first.cancel()
                return
            first.result()
            claims = asyncio.ensure_future(self._claim_loop())
            loops = [claims, asyncio.ensure_future(self._heartbeat_loop()), asyncio.ensure_future(self._outbox_loop())]
            await asyncio.wait({drain_asked, *loops}, return_when=asyncio.FIRST_COMPLETED)
            for loop in loops:
                if loop.done():
                    loop.result()
            await self._drain(claims)
        finally:
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            await self._link.close()

    # Requests that are repeated until there is an answer.

    async def _ask(self, route: str, body: str, timeout_s: float = REQUEST_TIMEOUT_S) -> Any:
        """Sends until the server takes or refuses it. Raises `Problem`."""
        pause_s = 0.1
        while True:
            generation = self._generation
            try:
                answer = await self._link.post(route, body, timeout_s)
                self._is_here()
                return answer
            except Away as away:
                self._is_not_here(away)
            except Problem as problem:
                if problem.code == "worker_unknown":
                    log.info("the server does not know this worker any more; registering again")
                    await self._register(generation)
                    continue
                if problem.status != 401:
                    raise
                # A restarted server has a new local token; a revoked one is the operator's to mend.
                if self._link.read_token():
                    continue
                self._is_not_here(problem)
            await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))
            pause_s = min(pause_s * 2, 5.0)

    async def _register(self, generation: int, is_first: bool = False) -> None:
        """Registers, unless somebody did since `generation` was read."""
        pause_s = 0.1
        async with self._registering:
            while generation == self._generation:
                try:
                    answer = await self._link.post("/worker/v1/register", self._registration, REQUEST_TIMEOUT_S)
                    self._generation += 1
                    self._lease_ttl_s = answer["lease_ttl_ms"] / 1000
                    self._heartbeat_s = answer["heartbeat_ms"] / 1000
                    self._claim_wait_ms = min(CLAIM_WAIT_MS, answer["claim_wait_max_ms"])
                    self._claim_max = answer["claim_max"]
                    self._is_here()
                    log.info("registered at %s as %s", self._address.base, self._worker_id)
                    return
                except Away as away:
                    self._is_not_here(away)
                except Problem as problem:
                    if problem.status == 401 and self._link.read_token():
                        continue
                    if is_first:
                        raise NotWelcome(str(problem)) from problem
                    self._is_not_here(problem)
                await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))
                pause_s = min(pause_s * 2, 5.0)

    def _is_here(self) -> None:
        if self._is_away:
            self._is_away = False
            log.info("the server answers again")

    def _is_not_here(self, why: Exception) -> None:
        if not self._is_away:
            self._is_away = True
            log.warning("no use of the server for now, trying again: %s", why)

    # Claims.

    async def _claim_loop(self) -> None:
        while not self._is_draining:
            free = self._slots - self._running
            # While the server takes no results it shall give no work either.
            if free <= 0 or len(self._outbox) > 4 * self._slots:
                self._room.clear()
                await self._room.wait()
                continue
            body = encode(
                {"worker_id": self._worker_id, "max": min(free, self._claim_max), "wait_ms": self._claim_wait_ms}
            )
            try:
                answer = await self._ask("/worker/v1/claim", body, self._claim_wait_ms / 1000 + 10)
            except Problem as problem:
                log.error("a claim was refused: %s", problem)
                await asyncio.sleep(1)
                continue
            calls = [Call(job) for job in answer["jobs"]]
            if calls:
                self._running += len(calls)
                for call in calls:
                    self._held[call.lease_token] = call
                self._deliver(calls)
            if answer.get("draining"):
                self._drain_asked.set()
                return

    # Heartbeats.

    async def _heartbeat_loop(self) -> None:
        timeout_s = max(self._lease_ttl_s / 2, 1.0)
        pause_s = self._heartbeat_s
        while True:
            started = time.monotonic()
            try:
                await asyncio.wait_for(self._news.wait(), pause_s)
                # The first news goes at once; what follows closely goes together.
                await asyncio.sleep(max(0.0, HEARTBEAT_GAP_S - (time.monotonic() - started)))
            except asyncio.TimeoutError:
                pass
            self._news.clear()
            try:
                await self._heartbeat(list(self._held.values()), timeout_s)
                pause_s = self._heartbeat_s
            except (Away, Problem) as problem:
                self._is_not_here(problem)
                pause_s = min(self._heartbeat_s / 2, 1.0)

    async def _heartbeat(self, calls: list[Call], timeout_s: float) -> None:
        try:
            await self._beat(calls, timeout_s)
        except Problem as problem:
            if problem.status not in (400, 413):
                raise
            # One piece of news, such as a checkpoint that is too large, must not cost the other leases.
            await self._beat(calls, timeout_s, with_news=False)
            for call in calls:
                if call.progress is None and call.checkpoint is UNSET:
                    continue
                try:
                    await self._beat([call], timeout_s)
                except Problem as problem:
                    log.warning("execution %s: its progress or checkpoint is refused: %s", call.execution_id, problem)
                    call.progress, call.checkpoint = None, UNSET

    async def _beat(self, calls: list[Call], timeout_s: float, with_news: bool = True) -> None:
        generation = self._generation
        leases = []
        sent: list[tuple[Call, Any, Any]] = []
        for call in calls:
            lease: dict[str, Any] = {"lease_token": call.lease_token}
            progress, checkpoint = (call.progress, call.checkpoint) if with_news else (None, UNSET)
            if progress is not None:
                lease["progress"] = progress
            if checkpoint is not UNSET:
                lease["checkpoint"] = checkpoint
            sent.append((call, progress, checkpoint))
            leases.append(lease)
        body = encode({"worker_id": self._worker_id, "leases": leases})
        try:
            answer = await self._link.post("/worker/v1/heartbeat", body, timeout_s)
        except Problem as problem:
            if problem.code == "worker_unknown":
                await self._register(generation)
            elif problem.status == 401 and self._link.read_token():
                pass
            else:
                raise
            self._news.set()
            return
        self._is_here()
        # What a handler has set meanwhile stays for the next one.
        for call, progress, checkpoint in sent:
            if progress is not None and call.progress is progress:
                call.progress = None
            if checkpoint is not UNSET and call.checkpoint is checkpoint:
                call.checkpoint = UNSET
        for lease in answer["leases"]:
            if lease["status"] != "ok":
                self._lose(lease["lease_token"], lease["status"])
        if answer.get("draining"):
            self._drain_asked.set()

    def _lose(self, lease_token: str, why: str) -> None:
        call = self._held.get(lease_token)
        if call is None or call.dropped:
            return
        log.info("execution %s: %s", call.execution_id, "cancelled" if why == "cancel" else "the lease is lost")
        self._let_go(call)
        call.drop(why)

    def _let_go(self, call: Call) -> None:
        self._held.pop(call.lease_token, None)
        self._fewer.set()

    # Outcomes.

    def _collect(self) -> None:
        # Before the queue is read: who appends now wakes us again.
        self._is_woken = False
        while self._finished:
            call = self._finished.popleft()
            self._running -= 1
            if call.outcome is None:
                self._let_go(call)
            else:
                self._outbox.append(call)
        self._room.set()
        self._mail.set()

    async def _outbox_loop(self) -> None:
        while True:
            if not self._outbox:
                self._mail.clear()
                await self._mail.wait()
                continue
            batch: list[Call] = []
            others: list[Call] = []
            chars = 0
            while self._outbox and len(batch) < BATCH_RESULTS and chars < BATCH_CHARS:
                call = self._outbox[0]
                route, text = call.outcome or ("", "")
                if route == "complete":
                    if batch and chars + len(text) > BATCH_CHARS:
                        break
                    chars += len(text)
                    batch.append(call)
                else:
                    others.append(call)
                self._outbox.popleft()
            self._sending = len(batch) + len(others)
            sending: list[Coroutine[Any, Any, None]] = [self._send_other(call) for call in others]
            if batch:
                sending.append(self._complete(batch))
            await (asyncio.gather(*sending) if len(sending) > 1 else sending[0])
            self._sending = 0
            self._fewer.set()
            self._room.set()

    async def _complete(self, batch: list[Call]) -> None:
        results = ",".join(
            f'{{"lease_token":{encode(call.lease_token)},"result":{call.outcome[1]}}}' for call in batch if call.outcome
        )
        try:
            body = f'{{"worker_id":"{self._worker_id}","results":[{results}]}}'
            answers = (await self._ask("/worker/v1/complete", body))["results"]
        except Problem as problem:
            if len(batch) > 1:
                # One of them spoils it for the others.
                for call in batch:
                    await self._complete([call])
                return
            if problem.status not in (400, 413):
                self._refused(batch[0], str(problem))
                return
            batch[0].outcome = ("fail", failure("result_refused", problem.detail, False))
            await self._send_other(batch[0])
            return
        for call, answer in zip(batch, answers, strict=True):
            if answer["status"] == "refused":
                self._refused(call, f"{answer.get('code')}: {answer.get('detail', '')}")
            else:
                self._let_go(call)

    async def _send_other(self, call: Call) -> None:
        route, members = call.outcome or ("", "")
        if call.checkpoint is not UNSET and route == "fail":
            try:
                await self._heartbeat([call], REQUEST_TIMEOUT_S)
            except (Away, Problem) as problem:
                log.warning("execution %s: the last checkpoint was not stored: %s", call.execution_id, problem)
        more = f",{members}" if members else ""
        body = f'{{"worker_id":"{self._worker_id}","lease_token":{encode(call.lease_token)}{more}}}'
        try:
            await self._ask(f"/worker/v1/{route}", body)
            self._let_go(call)
        except Problem as problem:
            self._refused(call, str(problem))

    def _refused(self, call: Call, why: str) -> None:
        log.warning("execution %s: the server refuses what came of attempt %d: %s", call.execution_id, call.attempt, why)
        self._let_go(call)

    async def _store_step(self, call: Call, name: str, text: str) -> Any:
        body = (
            f'{{"worker_id":"{self._worker_id}","lease_token":{encode(call.lease_token)},'
            f'"name":{encode(name)},"result":{text}}}'
        )
        try:
            return (await self._ask("/worker/v1/step", body))["result"]
        except Problem as problem:
            if problem.status == 400:
                raise ValueError(f"step {name!r}: {problem.detail}") from problem
            self._lose(call.lease_token, "lost")
            raise CallCancelled("lost") from problem

    # The end.

    async def _drain(self, claims: asyncio.Task[None]) -> None:
        self._is_draining = True
        deadline = time.monotonic() + self._grace_s
        self._room.set()
        await self._end_claims(claims)
        log.info("draining: nothing more is claimed, %d calls run", self._running)
        for call in list(self._held.values()):
            if call.outcome is None and call.begin():
                call.outcome = ("release", "")
                self.finish(call)
        while self._held or self._outbox or self._sending or self._finished:
            self._fewer.clear()
            try:
                await asyncio.wait_for(self._fewer.wait(), max(0.0, deadline - time.monotonic()))
            except asyncio.TimeoutError:
                break
        left = list(self._held.values())
        if left:
            log.warning("the grace time is over: %d calls are given up", len(left))
            for call in left:
                call.drop("lost")
            try:
                await self._heartbeat([call for call in left if call.checkpoint is not UNSET], GOODBYE_TIMEOUT_S)
            except (Away, Problem):
                log.debug("the last checkpoints were not stored")
        try:
            body = json.dumps({"worker_id": self._worker_id})
            await self._link.post("/worker/v1/deregister", body, GOODBYE_TIMEOUT_S)
            log.info("deregistered")
        except (Away, Problem) as problem:
            log.warning("not deregistered, the server will notice: %s", problem)

    async def _end_claims(self, claims: asyncio.Task[None]) -> None:
        """Ends the parked claim without losing what it may be bringing: who offers no tools any more is answered now."""
        try:
            await self._link.post("/worker/v1/register", self._leaving, GOODBYE_TIMEOUT_S)
            await asyncio.wait({claims}, timeout=GOODBYE_TIMEOUT_S)
        except (Away, Problem) as problem:
            log.debug("the server was not told of the drain: %s", problem)
        claims.cancel()
        await asyncio.gather(claims, return_exceptions=True)
