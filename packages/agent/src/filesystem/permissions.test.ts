import { expect, it } from "vitest";
import { permissionString } from "./permissions.ts";

it.each([
  [0o100644, "-rw-r--r--"],
  [0o040755, "drwxr-xr-x"],
  [0o120777, "Lrwxrwxrwx"],
  [0o010644, "prw-r--r--"],
  [0o020620, "Dcrw--w----"],
  [0o060660, "Drw-rw----"],
  [0o140755, "Srwxr-xr-x"],
  [0o041777, "dtrwxrwxrwx"],
  [0o106755, "ugrwxr-xr-x"],
])("writes mode %o as %s", (mode, expected) => {
  expect(permissionString(mode)).toBe(expected);
});
