import { readdirSync } from "node:fs";
import { join } from "node:path";
import { ROOT, readText } from "./repository.ts";

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly targets?: readonly { readonly refId: string; readonly expr: string }[];
}

export interface Dashboard {
  readonly file: string;
  readonly uid: string;
  readonly title: string;
  readonly panels: readonly Panel[];
}

/** The dashboards of deploy/grafana. */
export function readDashboards(): readonly Dashboard[] {
  const files = readdirSync(join(ROOT, "deploy/grafana")).filter((name) => name.endsWith(".json"));
  return files.map((file) => ({ ...JSON.parse(readText(`deploy/grafana/${file}`)), file }));
}

/** All queries of a dashboard, with values for Grafana's variables. */
export function queriesOf({ panels }: Dashboard): readonly string[] {
  const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  return queries.map((query) => query.replaceAll("$__rate_interval", "5m").replaceAll("$instance", ".*"));
}
