// Start, theme, resize, print.
function setTheme(name) {
  document.documentElement.dataset.theme = name;
  const dark = name === "dark";
  $("theme").textContent = dark ? "Light" : "Dark";
  $("theme").setAttribute("aria-pressed", String(dark));
}

function redraw() {
  cy.style(graphStyle());
  drawTimeline();
  drawWhatIf();
  drawFlow();
  drawRanges.again?.();
}

setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
$("theme").addEventListener("click", () => {
  setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  redraw();
});
// All below the first screen is folded; it is drawn open, without height, as drawings need a width.
for (const section of document.querySelectorAll("main > section:not(#summary)")) {
  const head = h("summary", null, section.querySelector("h2"));
  section.replaceChildren(h("details", { class: "fold", open: true }, head, h("div", null, [...section.childNodes])));
}
document.addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#"]');
  if (link) unfold(link.hash.slice(1));
});
addEventListener("hashchange", () => unfold(location.hash.slice(1)));
drawSummary();
drawFindings();
setupGraph();
drawGraph();
drawHints();
drawTables();
drawRecord();
drawCompare();
document.documentElement.dataset.ready = "yes";
// The page can be read and used from here on; the charts below the fold follow one by one.
function fold() {
  for (const part of document.querySelectorAll(".fold")) {
    part.open = false;
    part.addEventListener("toggle", resize);
  }
  document.documentElement.dataset.complete = "yes";
  unfold(location.hash.slice(1));
}
[drawTimeline, drawWhatIf, drawFlow, drawRanges, fold]
  .reduce((before, draw) => before.then(() => new Promise((done) => setTimeout(() => { draw(); done(); }, 0))), Promise.resolve());
let pending = 0;
function resize() {
  clearTimeout(pending);
  pending = setTimeout(() => { charts.forEach((c) => c.resize()); cy.resize(); }, 150);
}
addEventListener("resize", resize);
addEventListener("beforeprint", () => {
  document.querySelectorAll(".fold").forEach((part) => { part.open = true; });
  const before = document.documentElement.dataset.theme;
  if (before === "dark") {
    setTheme("light");
    redraw();
    addEventListener("afterprint", () => { setTheme("dark"); redraw(); }, { once: true });
  }
  cy.fit(undefined, 10);
});
