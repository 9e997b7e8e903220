import type { OtlpOptions } from "./otlp-tracing.ts";
import { useTracing } from "./trace.ts";

/** Begins to send traces. Returns a function that ends it. */
export async function startTracing(options: OtlpOptions): Promise<() => Promise<void>> {
  // Imported on demand: it loads OpenTelemetry, which takes time and memory.
  const { createOtlpTracing } = await import("./otlp-tracing.ts");
  const tracing = createOtlpTracing(options);
  useTracing(tracing);
  return async () => {
    useTracing(undefined);
    await tracing.close();
  };
}
