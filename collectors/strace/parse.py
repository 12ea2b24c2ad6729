"""Dispatch the calls of a log to handlers, and find the parent of every thread."""

from __future__ import annotations

from collections.abc import Iterable

from tracehint.collectors.strace.handlers import HANDLERS, data, descriptors, process
from tracehint.collectors.strace.lexer import Call, LexStats
from tracehint.collectors.strace.model import StraceSettings
from tracehint.collectors.strace.state import State

_MAX_HELD = 200_000  # calls of children whose parent is not known yet


class Parser:
    """Dispatches calls to handlers. A call that its handler rejects is counted, never fatal."""

    def __init__(self, settings: StraceSettings, stats: LexStats) -> None:
        self.state = State(settings)
        self.stats = stats
        self._held: dict[int, list[Call]] = {}
        self._held_count = 0

    def feed(self, calls: Iterable[Call]) -> State:
        """Process all calls and end processes that are still running. Returns the state."""
        state = self.state
        threads, handlers, seen = state.threads, HANDLERS, state.seen
        for call in calls:
            if call.end_ns > state.last_ns:
                state.last_ns = call.end_ns
            thread = threads.get(call.tid)
            if thread is None or call.kind != "call":
                self._handle_event(call)
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

    def _handle_event(self, call: Call) -> None:
        """Handle starts, exits, and all calls of threads that are not registered yet."""
        if call.kind == "done":
            return
        state = self.state
        thread = state.threads.get(call.tid)
        if thread is None:
            if call.kind == "exit" and call.tid not in self._held:
                if call.tid in state.replaced:
                    state.replaced.discard(call.tid)
                    return  # a thread that ended when another thread called exec
                if not state.pending_forks():
                    return  # the exit of an otherwise unknown process
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
                    descriptors.close(state, thread, call)  # the descriptor is free from now on
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
        """Register a new thread; False: its calls are held until its parent is known."""
        state = self.state
        pending_forks = state.pending_forks()
        if not pending_forks:
            self._release_all_held()
            state.new_root(call.tid, call.t_ns)
            return True
        if len(pending_forks) == 1 and not self._held:
            self._adopt(pending_forks.pop(), call.tid)
            return True
        if self._held_count >= _MAX_HELD:
            self._release_all_held()
            return self._introduce(call)
        self._held.setdefault(call.tid, []).append(call)
        self._held_count += 1
        return False

    def _adopt(self, parent: int, tid: int) -> None:
        """Register the child of a fork that has not returned yet."""
        state = self.state
        process.start_thread(state, state.threads[parent], tid, *state.cloning[parent])
        state.early[parent] = tid

    def _release(self) -> None:
        """Replay held calls of children with a known parent, which may reveal other parents."""
        state = self.state
        while self._held:
            known = next((t for t in self._held if t in state.threads), None)
            if known is None:
                pending_forks = state.pending_forks()
                if len(self._held) > 1 or len(pending_forks) != 1:
                    return
                known = next(iter(self._held))
                self._adopt(pending_forks.pop(), known)
            calls = self._held.pop(known)
            self._held_count -= len(calls)
            for call in calls:
                self._handle_event(call)

    def _release_all_held(self) -> None:
        """Release all held calls (too many, or end of the log): the oldest threads become roots."""
        while self._held:
            tid, calls = next(iter(self._held.items()))
            if tid not in self.state.threads:
                self.state.new_root(tid, calls[0].t_ns)
            self._release()

    def _end(self) -> None:
        """End the processes still running after the log; unless exit_group was called, at None."""
        state = self.state
        self._release_all_held()
        seen = set()
        for thread in state.threads.values():
            group = thread.group
            if id(group) not in seen:
                seen.add(id(group))
                state.running += 1
                state.end_epoch(group.epoch, group.exit_ns, group.exit_code)
        state.threads.clear()
