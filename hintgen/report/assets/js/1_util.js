// Helpers: text only ever enters the page as text nodes.
const DATA = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

function h(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "onclick") node.addEventListener("click", value);
    else if (name === "style") Object.assign(node.style, value);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((c) => c !== null && c !== undefined)
    .map((c) => (c instanceof Node ? c : document.createTextNode(String(c)))));
  return node;
}

function fill(node, ...children) {
  node.replaceChildren(...children.flat(2).filter((c) => c !== null && c !== undefined));
  return node;
}

// Numbers as hintgen/text/units.py prints them.
function size(bytes) {
  if (bytes === null || bytes === undefined) return "?";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let value = bytes, unit = 0;
  while (Math.abs(value) >= 1023.5 && unit < units.length - 1) { value /= 1024; unit += 1; }
  return (unit === 0 || Math.abs(value) >= 99.95 ? Math.round(value) : Number(value.toPrecision(3))) + " " + units[unit];
}

function seconds(value) {
  if (value === null || value === undefined) return "?";
  if (value < 59.95) return (value < 0.01 ? value.toFixed(3) : value.toPrecision(3)) + " s";
  const two = (n) => String(n).padStart(2, "0"), whole = Math.round(value), minutes = Math.floor(whole / 60);
  return minutes < 60 ? `${minutes} min ${two(whole % 60)} s` : `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}

const count = (n) => n.toLocaleString("en-US");
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
const shown = (name) => name.replaceAll("_", " ");
const at = (coded, i) => coded.values[coded.codes[i]];

// Distance of ticks on an axis of time: round in seconds, minutes or hours, ten ticks at most.
function timeStep(span) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
  if (span < 10) { const unit = 10 ** Math.floor(Math.log10(span / 10)); return [1, 2, 5, 10].map((k) => k * unit).find((s) => span / s <= 10); }
  return steps.find((s) => span / s <= 10) || Math.ceil(span / 864000) * 86400;
}

function shorten(name, width) {
  if (name.length <= width) return name;
  const tail = Math.floor((width - 1) / 2);
  return name.slice(0, width - 1 - tail) + "…" + name.slice(-tail);
}

const GREY = { line: "#8a8a8a", fill: "#e2e2e2" };
const colorOf = (pattern) => DATA.colors[pattern] || GREY;
// Okabe and Ito's colours for things that are no patterns (task types), as in the tool's pictures.
const CYCLE = ["#56B4E9", "#E69F00", "#2fb88a", "#CC79A7", "#9fb4c7", "#ef8a4a", "#c9bb2e", "#a9a9a9"];
const typeColor = (k) => CYCLE[k % CYCLE.length];

function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function swatch(pattern) {
  return h("span", { class: "swatch", style: { background: colorOf(pattern).line }, "aria-hidden": "true" });
}

// What a remedy saves; the words of Gain.text in hintgen/summary/gain.py.
function gainText(gain) {
  if (!gain || !DATA.baseline) return "";
  const parts = [];
  if (gain.significant) parts.push(`${seconds(gain.makespan_s)} (${seconds(gain.makespan_low_s)} to ${seconds(gain.makespan_high_s)})`);
  if (gain.network_bytes > Math.max(0, 0.05 * DATA.baseline.network_bytes)) parts.push(size(gain.network_bytes) + " network traffic");
  return parts.join(", ") || "no significant change";
}

// Open the section of that id, where it is folded.
function unfold(id) {
  const part = $(id)?.querySelector(":scope > .fold");
  if (part) part.open = true;
}

function goTo(id) {
  unfold(id);
  $(id).scrollIntoView();
}

function copyButton(value, label = "Copy") {
  const button = h("button", { type: "button", class: "copy", "aria-label": "Copy " + value }, label);
  button.addEventListener("click", async () => {
    let done = false;
    try { await navigator.clipboard.writeText(value); done = true; } catch { done = copyBySelection(value); }
    button.textContent = done ? "Copied" : "Press Ctrl+C";
    button.setAttribute("aria-label", `${button.textContent} ${value}`);
    setTimeout(() => { button.textContent = label; button.setAttribute("aria-label", "Copy " + value); }, 3000);
  });
  return button;
}

function copyBySelection(value) {
  // Pages opened from a file have no clipboard API in some browsers.
  const field = h("textarea", { class: "visually-hidden", readonly: true });
  field.value = value;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}
