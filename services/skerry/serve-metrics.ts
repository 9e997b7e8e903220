import { errnoOf, type Logger } from "@skerry/base";
import { listenMetrics, measureProcess } from "@skerry/telemetry";
import type { ServeConfig } from "./config.ts";

/**
 * Serves the metrics of this process, if the configuration says so. Returns a function that ends it.
 *
 * Failure policy: sandboxes are not refused for want of metrics. If the address is not available, this warns, and the platform runs without.
 */
export async function serveMetrics(
  { metrics, roles }: Pick<ServeConfig, "metrics" | "roles">,
  { version, logger }: { readonly version: string; readonly logger: Logger },
): Promise<() => Promise<void>> {
  if (!metrics) return async () => {};
  const stopMeasuring = measureProcess({ version, roles: [...roles] });
  try {
    const listener = await listenMetrics(metrics);
    return async () => {
      stopMeasuring();
      await listener.close();
    };
  } catch (error) {
    stopMeasuring();
    const facts = { err: error, address: metrics.host, port: metrics.port, errno: errnoOf(error) };
    logger.warn(facts, "the metrics are not served: the address is not available; change SKERRY_METRICS_PORT or SKERRY_METRICS_LISTEN");
    return async () => {};
  }
}
