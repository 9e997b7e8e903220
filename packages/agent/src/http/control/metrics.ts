import { readUsage } from "../../metrics/read-usage.ts";
import { type Exchange, HttpError, sendJson } from "../exchange.ts";

const MIB = 1024 * 1024;

export async function metrics({ res, state }: Exchange): Promise<void> {
  res.setHeader("Cache-Control", "no-store");
  const usage = await readUsage(state.memoryMB === undefined ? undefined : state.memoryMB * MIB).catch(() => {
    throw new HttpError(500, "", "empty");
  });
  sendJson(res, {
    ts: Math.floor(Date.now() / 1000),
    cpu_count: usage.cpuCount,
    cpu_used_pct: usage.cpuUsedPercent,
    mem_total: usage.memoryTotal,
    mem_used: usage.memoryUsed,
    mem_cache: usage.memoryCache,
    mem_total_mib: Math.floor(usage.memoryTotal / MIB),
    mem_used_mib: Math.floor(usage.memoryUsed / MIB),
    disk_total: usage.diskTotal,
    disk_used: usage.diskUsed,
  });
}
