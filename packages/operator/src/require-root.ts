import { OperatorError } from "@skerry/setup/folder";

export function requireRoot(command: string): void {
  if (process.getuid?.() === 0) return;
  throw new OperatorError(`./skerry ${command} needs root: it makes namespaces, mounts and firewall rules`, {
    exit: "notRoot",
    mend: [`Run: sudo ./skerry ${command}`],
  });
}
