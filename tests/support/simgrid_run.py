"""Times of a task graph by SimGrid, as JSON on stdout; run by the system's Python.

Input on stdin: {"rate": bytes per second of a link, "hosts": n, "nodes": [[task, ...] per node in
order], "tasks": [{"after": [task], "steps": [["move", from, to, bytes] | ["sleep", seconds]]}]}.
"""

from __future__ import annotations

import json
import sys

from simgrid import Actor, Comm, Engine, LinkInRoute, NetZone, Semaphore, this_actor


def main() -> None:
    data = json.load(sys.stdin)
    engine = Engine(
        ["x", "--log=root.thresh:error", "--cfg=network/model:CM02", "--cfg=network/TCP-gamma:0",
         "--cfg=network/crosstraffic:0"]
    )  # fmt: skip  # a table
    zone = NetZone.create_full_zone("zone")
    hosts = [zone.create_host(f"h{i}", 1e9) for i in range(data["hosts"])]
    up = [zone.create_link(f"up{i}", data["rate"]) for i in range(len(hosts))]
    down = [zone.create_link(f"down{i}", data["rate"]) for i in range(len(hosts))]
    for i, one in enumerate(hosts):
        for k, other in enumerate(hosts):
            if i != k:
                way = [LinkInRoute(up[i]), LinkInRoute(down[k])]
                zone.add_route(one.netpoint, other.netpoint, None, None, way, False)
    zone.seal()
    done = [Semaphore(0) for _ in data["tasks"]]
    ends = [0.0] * len(done)

    def work(order: list[int]) -> None:
        for number in order:
            task = data["tasks"][number]
            for before in task["after"]:
                done[before].acquire()
                done[before].release()
            for step in task["steps"]:
                if step[0] == "sleep":
                    this_actor.sleep_for(step[1])
                else:
                    Comm.sendto(hosts[step[1]], hosts[step[2]], step[3])
            ends[number] = Engine.clock
            done[number].release()

    for node, order in enumerate(data["nodes"]):
        if order:
            Actor.create(f"node{node}", hosts[node], work, order)
    engine.run()
    json.dump(ends, sys.stdout)


if __name__ == "__main__":
    main()
