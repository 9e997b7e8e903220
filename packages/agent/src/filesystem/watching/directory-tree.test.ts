import { expect, it } from "vitest";
import { DirectoryTree, type WatchedDirectory } from "./directory-tree.ts";

function attach(tree: DirectoryTree, wd: number, parent: WatchedDirectory, name: string): WatchedDirectory {
  const directory = tree.attach(wd, parent, name);
  if (!directory) throw new Error("refused");
  return directory;
}

it("knows the path of each directory, also after one above it moved", () => {
  const tree = new DirectoryTree(1);
  const a = attach(tree, 2, tree.root, "a");
  const b = attach(tree, 3, tree.root, "b");
  const deep = attach(tree, 4, attach(tree, 5, a, "in"), "deep");
  expect([tree.root, a, deep].map((directory) => tree.pathOf(directory))).toEqual(["", "a", "a/in/deep"]);
  expect(tree.move(a, b, "c")).toBe(true);
  expect(tree.pathOf(deep)).toBe("b/c/in/deep");
  expect(tree.root.children.has("a")).toBe(false);
});

it("forgets a directory with everything below it, and not what took its name", () => {
  const tree = new DirectoryTree(1);
  const old = attach(tree, 2, tree.root, "a");
  attach(tree, 3, old, "x");
  const replacement = attach(tree, 4, tree.root, "a");
  expect(tree.detach(old).sort()).toEqual([2, 3]);
  expect(tree.root.children.get("a")).toBe(replacement);
  expect([...tree.wds()]).toEqual([1, 4]);
});

it("takes a known number for the same directory under its new name", () => {
  const tree = new DirectoryTree(1);
  const a = attach(tree, 2, tree.root, "a");
  expect(attach(tree, 2, tree.root, "b")).toBe(a);
  expect([...tree.root.children.keys()]).toEqual(["b"]);
});

it("refuses a directory inside itself", () => {
  const tree = new DirectoryTree(1);
  const a = attach(tree, 2, tree.root, "a");
  expect(tree.attach(2, attach(tree, 3, a, "b"), "again")).toBeUndefined();
  expect(tree.attach(1, a, "root")).toBeUndefined();
  expect(tree.pathOf(a)).toBe("a");
});
