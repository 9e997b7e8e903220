import { expect, test } from "vitest";
import { renderPage } from "./error-page.ts";

test("what a request said appears as text, never as markup", () => {
  const page = renderPage(404, { title: "<b>&", detail: `/"'><script>alert(1)</script>` });
  expect(page).not.toContain("<script>");
  expect(page).not.toContain("<b>");
  expect(page).toContain("&lt;b&gt;&amp;");
  expect(page).toContain("/&quot;&#39;&gt;&lt;script&gt;");
  expect(page.trimEnd().endsWith("</html>")).toBe(true);
});
