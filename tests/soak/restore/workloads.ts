import { join } from "node:path";

/** A program that can check its own state. */
export interface Workload {
  readonly name: string;
  readonly title: string;
  /** Its files in guests/. Sandboxes have them in `GUEST_DIR`. */
  readonly files: readonly string[];
  /** Shell command that starts the program and returns when `check` works. */
  readonly start: string;
  /** Shell command that prints a `Check` as JSON. A deep check includes slow checks. */
  check(deep: boolean): string;
  /** Shell command that makes the program differ from its siblings. */
  mark(text: string): string;
}

export const GUEST_SOURCES = join(import.meta.dirname, "guests");
export const GUEST_DIR = "/home/user/guest";
/** Output of the program. */
export const GUEST_LOG = "/home/user/soak.log";

/** A workload that answers on port 7000. */
function server(about: { name: string; title: string; files: readonly string[]; command: string }): Workload {
  const { command, ...rest } = about;
  // With frequent pauses, a connection may wait for one that was closed before a pause: see docs/lifecycle.md.
  const ask = "curl --silent --show-error --fail --max-time 150";
  return {
    ...rest,
    start: inBackground(command, `${ask} --output /dev/null http://127.0.0.1:7000/check`),
    check: () => `${ask} http://127.0.0.1:7000/check`,
    mark: (text) => `${ask} --data '${text}' http://127.0.0.1:7000/mark`,
  };
}

/** Runs `ready` until it succeeds, for two minutes at most. */
function inBackground(command: string, ready: string): string {
  const wait = `for i in $(seq 600); do ${ready} 2>/dev/null && exit 0; sleep 0.2; done; tail -n 5 ${GUEST_LOG} >&2; exit 1`;
  return `setsid ${command} >>${GUEST_LOG} 2>&1 </dev/null & ${wait}`;
}

const CHROMIUM = [
  "/usr/lib/chromium/chromium-headless-shell",
  // Chromium's own sandbox needs namespaces that are not available in a sandbox.
  "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update",
  "--user-data-dir=/home/user/soak/profile --remote-debugging-port=9222 http://127.0.0.1:7001/",
].join(" ");

export const WORKLOADS: readonly Workload[] = [
  server({ name: "python", title: "CPython", files: ["python.py"], command: `python3 ${GUEST_DIR}/python.py` }),
  server({ name: "node", title: "Node.js", files: ["node.ts"], command: `node ${GUEST_DIR}/node.ts` }),
  server({ name: "jvm", title: "JVM", files: ["Soak.java"], command: `java -Xmx256m ${GUEST_DIR}/Soak.java` }),
  server({ name: "go", title: "Go", files: [], command: "/opt/soak/soak-go" }),
  {
    name: "postgres",
    title: "PostgreSQL",
    files: ["postgres.sh"],
    start: `bash ${GUEST_DIR}/postgres.sh start 2>>${GUEST_LOG} >>${GUEST_LOG}`,
    check: (deep) => `bash ${GUEST_DIR}/postgres.sh check ${deep ? "deep" : ""}`,
    mark: (text) => `bash ${GUEST_DIR}/postgres.sh mark '${text}'`,
  },
  {
    name: "chromium",
    title: "Chromium",
    files: ["chromium.ts", "chromium.html"],
    start: `setsid node ${GUEST_DIR}/chromium.ts serve >>${GUEST_LOG} 2>&1 </dev/null &
      until curl --silent --output /dev/null http://127.0.0.1:7001/; do sleep 0.1; done
      ${inBackground(CHROMIUM, `node ${GUEST_DIR}/chromium.ts check >/dev/null`)}`,
    check: () => `node ${GUEST_DIR}/chromium.ts check`,
    mark: (text) => `node ${GUEST_DIR}/chromium.ts mark '${text}'`,
  },
];
