import { expect, test } from "vitest";
import { choosePackageManager, distributionOf, packagesFor } from "./packages.ts";

const choose = (osRelease: string, ...present: string[]) => choosePackageManager(osRelease, new Set(["sh", ...present]));

test.each([
  ["ID=debian\n", ["apt-get"], "apt-get"],
  ['ID=linuxmint\nID_LIKE="ubuntu debian"\n', ["apt-get"], "apt-get"],
  ['ID="rocky"\nID_LIKE="rhel centos fedora"\n', ["dnf", "yum"], "dnf"],
  ['ID="rhel"\n', ["microdnf"], "microdnf"],
  ["ID=alpine\n", ["apk"], "apk"],
  ["ID=arch\n", ["pacman"], "pacman"],
  // The family decides when somebody has installed another one's program.
  ["ID=fedora\n", ["apt-get", "dnf"], "dnf"],
  ["ID=unheard-of\n", ["zypper"], "zypper"],
  ["", ["apk"], "apk"],
])("%s with %s installs with %s", (osRelease, present, program) => {
  expect(choose(osRelease, ...present)?.program).toBe(program);
});

test("without a shell or without a program that installs, nothing can be installed", () => {
  expect(choosePackageManager("ID=debian", new Set(["apt-get"]))).toBeUndefined();
  expect(choose("ID=debian")).toBeUndefined();
});

test("packages are called as the distribution calls them", () => {
  const wanted = ["/bin/bash", "sudo", "ss", "pgrep", "git"];
  const apt = choose("ID=debian", "apt-get");
  const dnf = choose("ID=fedora", "dnf");
  expect(apt && packagesFor(apt, wanted)).toEqual(["bash", "sudo", "iproute2", "procps", "git"]);
  expect(dnf && packagesFor(dnf, wanted)).toEqual(["bash", "sudo", "iproute", "procps-ng", "git-core"]);
});

test("the log names the distribution", () => {
  expect(distributionOf('PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\n')).toBe("Debian GNU/Linux 12 (bookworm)");
  expect(distributionOf("")).toBe("no known distribution");
});
