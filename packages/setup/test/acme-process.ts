// A process that keeps a certificate, and kills itself at the crash point of its second argument.

import { armCrashPoint, createLogger } from "@skerry/base";
import { keepAcmeCertificate } from "../src/tls/acme/index.ts";

const [options = "", point] = process.argv.slice(2);
armCrashPoint(point);
await keepAcmeCertificate({ ...JSON.parse(options), logger: createLogger({ name: "acme", level: "info" }) });
// The keeper's timers keep no process alive.
setInterval(() => {}, 60_000);
