import { basename } from "node:path";
import { DEFAULT_DATA_DIR, OperatorError } from "@skerry/setup/folder";

/** Time for saving memory at a shutdown of the host, in seconds. */
export const SUSPEND_SECONDS = 240;
/** More than a suspend takes at most, together with the stop of the process. */
const STOP_SECONDS = SUSPEND_SECONDS + 120;

/** The names and files of the service of a data folder. */
export interface Service {
  readonly name: string;
  readonly unitFile: string;
  /** The SKERRY_ variables of the service, which may contain passwords. */
  readonly environmentFile: string;
}

export function serviceOf(dataDir: string, chosen?: string): Service {
  const name = chosen ?? (dataDir === DEFAULT_DATA_DIR ? "skerry" : `skerry-${basename(dataDir)}`);
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{0,100}$/.test(name)) {
    throw new OperatorError(`"${name}" cannot be the name of a service`, { exit: "usage", hints: ["Choose another one with --name."] });
  }
  return { name, unitFile: `/etc/systemd/system/${name}.service`, environmentFile: `/etc/default/${name}` };
}

/**
 * `KillMode=process`: systemd signals only the command, which stops the platform. Sandboxes survive that, so that `systemctl restart` keeps
 * them. `ExecStop` pauses them only when the whole host goes down.
 */
export function unitText(service: Service, about: { readonly program: string; readonly dataDir: string }): string {
  const command = (...args: string[]) => [about.program, ...args, "--data", about.dataDir].map(quoted).join(" ");
  return `[Unit]
Description=Skerry, sandboxes for untrusted code
Wants=network-online.target
After=network-online.target local-fs.target

[Service]
Type=notify
NotifyAccess=all
EnvironmentFile=-${service.environmentFile}
ExecStart=${command("service")}
ExecStop=${command("suspend", "--at-shutdown", "--within", String(SUSPEND_SECONDS))}
KillMode=process
Restart=on-failure
RestartSec=2
TimeoutStartSec=900
TimeoutStopSec=${STOP_SECONDS}
LimitNOFILE=1048576
TasksMax=infinity
OOMPolicy=continue

[Install]
WantedBy=multi-user.target
`;
}

/** The variables as a file that systemd reads. */
export function environmentText(env: Readonly<Record<string, string | undefined>>): string {
  const lines = Object.entries(env).flatMap(([name, value]) =>
    name.startsWith("SKERRY_") && !name.startsWith("SKERRY_TEST_") && value ? [`${name}="${value.replace(/["\\$`]/g, "\\$&")}"\n`] : [],
  );
  return lines.sort().join("");
}

/** In a command of a unit, `%` and `$` have meanings. */
function quoted(word: string): string {
  const plain = word.replaceAll("%", "%%").replaceAll("$", "$$$$");
  return /^[A-Za-z0-9_./:@%$+=-]+$/.test(plain) ? plain : `"${plain.replace(/["\\]/g, "\\$&")}"`;
}
