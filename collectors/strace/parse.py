"""The loop over a log's calls: who made the call, which handler, what to do with surprises."""

from __future__ import annotations

from collections.abc import Iterable

from tracehint.collectors.strace.handlers import HANDLERS, data, descriptors, process
from tracehint.collectors.strace.lexer import Call, LexStats
from tracehint.collectors.strace.model import StraceSettings
from tracehint.collectors.strace.state import State

_MAX_HELD = 200_000  # calls of children whose parent is not known yet


class Parser:
    """Feeds calls to handlers. A call that no handler understands is counted, never fatal."""

    def __init__(self, settings: StraceSettings, stats: LexStats) -> None:
        self.state = State(settings)
        self.stats = stats
        self._held: dict[int, list[Call]] = {}
        self._held_count = 0

    def feed(self, calls: Iterable[Call]) -> State:
        """Read all calls and end what is still open. Returns the state with its tables."""
        state = self.state
        threads, handlers, seen = state.threads, HANDLERS, state.seen
        for call in calls:
            if call.end_ns > state.last_ns:
                state.last_ns = call.end_ns
            thread = threads.get(call.tid)
            if thread is None or call.kind != "call":
                self._special(call)
                continue
            seen.add(call.name)
            handler = handlers.get(call.name)
            if handler is None:
                continue
            try:
                handler(state, thread, call)
            except (ValueError, IndexError, KeyError, TypeError, OverflowError):
                self.stats.reject(call.tid, call.line)
            if self._held and call.name in process.CLONES:
                self._release()
        self._end()
        return state

    def _special(self, call: Call) -> None:
        """Beginnings, ends, and calls of threads that nobody has introduced yet."""
        if call.kind == "done":
            return
        state = self.state
        thread = state.threads.get(call.tid)
        if thread is None:
            if call.kind == "exit" and call.tid not in self._held:
                if call.tid in state.replaced:
                    state.replaced.discard(call.tid)
                    return  # a thread that ended when another one called exec
                if not state.childless():
                    return  # the end of a process of which nothing else is known
            if not self._introduce(call):
                return
            thread = state.thread(call.tid, call.t_ns)
        try:
            if call.kind == "exit":
                if call.args:
                    data.count_interrupted(state, thread, call)
                process.exit_(state, thread, call)
            elif call.kind == "start":
                if call.name in process.CLONES:
                    state.cloning[call.tid] = (call.args, call.t_ns)
                elif call.name == b"close":
                    descriptors.close(state, thread, call)  # the number is free from now on
                elif call.name in descriptors.SENDS:
                    descriptors.note_sending(state, thread, call)  # may arrive before it returns
            else:
                state.seen.add(call.name)
                handler = HANDLERS.get(call.name)
                if handler is not None:
                    handler(state, thread, call)
        except (ValueError, IndexError, KeyError, TypeError, OverflowError):
            self.stats.reject(call.tid, call.line)

    def _introduce(self, call: Call) -> bool:
        """Find the parent of a new thread; False: its calls are held until that is known."""
        state = self.state
        childless = state.childless()
        if not childless:
            self._give_up()
            state.new_root(call.tid, call.t_ns)
            return True
        if len(childless) == 1 and not self._held:
            self._adopt(childless.pop(), call.tid)
            return True
        if self._held_count >= _MAX_HELD:
            self._give_up()
            return self._introduce(call)
        self._held.setdefault(call.tid, []).append(call)
        self._held_count += 1
        return False

    def _adopt(self, parent: int, tid: int) -> None:
        """Make the child of a fork that has not returned yet."""
        state = self.state
        process.start_thread(state, state.threads[parent], tid, *state.cloning[parent])
        state.early[parent] = tid

    def _release(self) -> None:
        """Replay the held calls of children whose parent is known by now; that may tell others."""
        state = self.state
        while self._held:
            known = next((t for t in self._held if t in state.threads), None)
            if known is None:
                childless = state.childless()
                if len(self._held) > 1 or len(childless) != 1:
                    return
                known = next(iter(self._held))
                self._adopt(childless.pop(), known)
            calls = self._held.pop(known)
            self._held_count -= len(calls)
            for call in calls:
                self._special(call)

    def _give_up(self) -> None:
        """Too many are waiting, or the log is over: the oldest ones get no parent."""
        while self._held:
            tid, calls = next(iter(self._held.items()))
            if tid not in self.state.threads:
                self.state.new_root(tid, calls[0].t_ns)
            self._release()

    def _end(self) -> None:
        """The log is over: end what is still running with an unknown end."""
        state = self.state
        self._give_up()
        seen = set()
        for thread in state.threads.values():
            group = thread.group
            if id(group) not in seen:
                seen.add(id(group))
                state.running += 1
                state.end_epoch(group.epoch, group.exit_ns, group.exit_code)
        state.threads.clear()
