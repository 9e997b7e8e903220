// Writes a package.json and package-lock.json for the two packages that everything else is installed with: Node.js and
// npm, as package-lock.json pins them. Run by whatever Node.js this system has (12 or newer), before any other is here.
// biome-ignore-all lint/style/useNodejsImportProtocol: Node.js 12 does not know it.
"use strict";
const fs = require("fs");
const path = require("path");

const [, , root, target, nodePackage] = process.argv;
const lock = JSON.parse(fs.readFileSync(path.join(root, "package-lock.json"), "utf8"));
const names = [nodePackage, "npm"];
const dependencies = {};
const packages = { "": { name: "skerry-bootstrap", dependencies } };
for (const name of names) dependencies[name] = lock.packages[`node_modules/${name}`].version;
for (const key of Object.keys(lock.packages)) {
  if (!names.some((name) => key === `node_modules/${name}` || key.startsWith(`node_modules/${name}/`))) continue;
  const entry = Object.assign({}, lock.packages[key]);
  delete entry.dev;
  delete entry.optional;
  packages[key] = entry;
}
const write = (file, value) => fs.writeFileSync(path.join(target, file), JSON.stringify(value, null, 2));
write("package.json", { name: "skerry-bootstrap", private: true, dependencies });
write("package-lock.json", { name: "skerry-bootstrap", lockfileVersion: 3, requires: true, packages });
