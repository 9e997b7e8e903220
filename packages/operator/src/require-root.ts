import { OperatorError } from "@skerry/setup/folder";

export function requireRoot(command: string): void {
  if (process.getuid?.() === 0) return;
  throw new OperatorError(`./skerry ${command} requires root: it creates namespaces, mounts and firewall rules`, {
    exit: "notRoot",
    hints: [`Run: sudo ./skerry ${command}`],
  });
}
