import { expect, it } from "vitest";
import { isPrivateNetwork } from "./private-networks.ts";

it.each(["10.0.0.0/8", "10.1.2.3", "192.168.1.0/24", "172.31.255.0/24", "100.64.0.0/10", "198.19.0.0/16"])(
  "%s can be opened",
  (network) => {
    expect(isPrivateNetwork(network)).toBe(true);
  },
);

it.each([
  "0.0.0.0/0",
  "8.8.8.8",
  "127.0.0.1",
  "169.254.169.254",
  "172.0.0.0/8",
  "192.168.0.0/15",
  "224.0.0.1",
  "fd00::/8",
  "x",
  "",
  "10.0.0.0/33",
])("%s cannot be opened", (network) => {
  expect(isPrivateNetwork(network)).toBe(false);
});
