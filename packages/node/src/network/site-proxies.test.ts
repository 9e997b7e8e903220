import { createLogger, Secret } from "@skerry/base";
import { NO_SITE } from "@skerry/wire";
import { expect, it } from "vitest";
import { SiteProxies } from "./site-proxies.ts";

const logger = createLogger({ name: "site-proxies", level: "error", fd: 2 });
const siteOf = (httpProxy: string, httpsProxy = "") => new Secret({ ...NO_SITE, httpProxy, httpsProxy });

it("knows no address where the site has no proxy", async () => {
  expect(await new SiteProxies({ site: undefined, logger }).look()).toEqual([]);
  expect(await new SiteProxies({ site: new Secret(NO_SITE), logger }).look()).toEqual([]);
});

it("takes an address as it is, once, and without the credentials", async () => {
  const site = siteOf("http://user:password@10.1.2.3:3128", "http://10.1.2.3:3128");
  expect(await new SiteProxies({ site, logger }).look()).toEqual([{ address: "10.1.2.3", port: 3128 }]);
});

it("lists every address of a name, at the port of the URL", async () => {
  const resolve = async () => ["10.0.0.2", "10.0.0.1"];
  const proxies = new SiteProxies({ site: siteOf("http://proxy.example:80", "https://proxy.example:443"), logger, resolve });
  expect(await proxies.look()).toEqual([
    { address: "10.0.0.1", port: 80 },
    { address: "10.0.0.2", port: 80 },
    { address: "10.0.0.1", port: 443 },
    { address: "10.0.0.2", port: 443 },
  ]);
});

it("keeps the addresses of a name that cannot be resolved any more", async () => {
  let answers = 1;
  const resolve = async () => {
    answers -= 1;
    if (answers < 0) throw new Error("no such host");
    return ["10.0.0.1"];
  };
  const proxies = new SiteProxies({ site: siteOf("http://proxy.example:3128"), logger, resolve });
  expect([await proxies.look(), await proxies.look()]).toEqual(Array(2).fill([{ address: "10.0.0.1", port: 3128 }]));
});
