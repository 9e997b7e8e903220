"""Metrics of a sandbox over the platform API, with both clients of the official SDK."""

import asyncio
import time

from e2b import AsyncSandbox, Sandbox

FIELDS = ("cpu_count", "cpu_used_pct", "mem_used", "mem_total", "disk_used", "disk_total")


def check(metrics):
    assert all(getattr(metric, field) > 0 for metric in metrics for field in FIELDS), metrics
    times = [metric.timestamp for metric in metrics]
    assert times == sorted(times), times


sbx = Sandbox.create()
deadline = time.monotonic() + 60
while not (metrics := sbx.get_metrics()) and time.monotonic() < deadline:
    time.sleep(0.5)
assert metrics
check(metrics)


async def read():
    other = await AsyncSandbox.connect(sbx.sandbox_id)
    return await other.get_metrics()


check(asyncio.run(read()))
sbx.kill()
print("all well")
