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
[drawTimeline, drawWhatIf, drawFlow, drawRanges, () => { document.documentElement.dataset.complete = "yes"; }]
  .reduce((before, draw) => before.then(() => new Promise((done) => setTimeout(() => { draw(); done(); }, 0))), Promise.resolve());
let pending = 0;
addEventListener("resize", () => {
  clearTimeout(pending);
  pending = setTimeout(() => { charts.forEach((c) => c.resize()); cy.resize(); }, 150);
});
addEventListener("beforeprint", () => {
  const before = document.documentElement.dataset.theme;
  if (before === "dark") {
    setTheme("light");
    redraw();
    addEventListener("afterprint", () => { setTheme("dark"); redraw(); }, { once: true });
  }
  cy.fit(undefined, 10);
});
