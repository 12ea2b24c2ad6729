// The graph: folded by task type and file template; single folds open to their members.
const MEMBERS = 150;
const nodeById = new Map(DATA.graph.nodes.map((n) => [n.id, n]));
const members = new Map(DATA.graph.nodes.map((n) => [n.id, []]));
DATA.tasks.name.forEach((_, i) => members.get(at(DATA.tasks.node, i))?.push(i));
DATA.files.path.forEach((_, i) => members.get(at(DATA.files.node, i))?.push(i));
const open = new Set();
let cy = null;

function elementOf(kind, i) {
  const fold = at(DATA[kind === "task" ? "tasks" : "files"].node, i);
  if (!open.has(fold)) return fold;
  return members.get(fold).indexOf(i) < MEMBERS ? `${kind}:${i}` : fold;
}

function foldedNode(n, label) {
  const what = n.kind === "task" ? label + (n.count > 1 ? ` × ${count(n.count)}` : "")
    : [label, (n.count > 1 ? plural(n.count, "file") + ", " : "") + size(n.bytes), shown(n.pattern)].filter(Boolean).join("\n");
  return { id: n.id, kind: n.kind, label: what, pattern: n.pattern, role: n.role };
}

function graphElements() {
  const nodes = [], edges = new Map();
  for (const n of DATA.graph.nodes) {
    const own = members.get(n.id);
    if (!open.has(n.id)) {
      nodes.push(foldedNode(n, n.kinds > 1 ? `${shorten(n.label, 20)} + ${plural(n.kinds - 1, "kind")}` : shorten(n.label, 30)));
      continue;
    }
    own.slice(0, MEMBERS).forEach((i) => nodes.push(n.kind === "task"
      ? { id: `task:${i}`, kind: "task", label: shorten(DATA.tasks.name[i], 30) }
      : { id: `file:${i}`, kind: "file", role: n.role, pattern: at(DATA.files.pattern, i),
        label: `${shorten(DATA.files.path[i], 30)}\n${size(DATA.files.size_bytes[i])}` }));
    if (n.count > Math.min(own.length, MEMBERS)) nodes.push(foldedNode(n, "more of " + shorten(n.label, 24)));
  }
  const add = (source, target, bytes, pattern, peek, via) => {
    const key = source + "\n" + target, known = edges.get(key);
    if (known) { known.bytes += bytes; known.peek = known.peek && peek; }
    else edges.set(key, { source, target, bytes, pattern: pattern || "", peek, via });
  };
  for (const l of DATA.graph.links) {
    if (!open.has(l.source) && !open.has(l.target)) add(l.source, l.target, l.bytes, l.pattern, l.peek, l.via);
  }
  if (open.size) {
    const { task, file, bytes, kind } = DATA.pairs;
    for (let k = 0; k < task.length; k += 1) {
      if (!open.has(at(DATA.tasks.node, task[k])) && !open.has(at(DATA.files.node, file[k]))) continue;
      const t = elementOf("task", task[k]), f = elementOf("file", file[k]);
      add(kind[k] === 0 ? t : f, kind[k] === 0 ? f : t, bytes[k], at(DATA.files.pattern, file[k]), kind[k] === 2, "data");
    }
  }
  return { nodes, edges: [...edges.values()] };
}

function lineWidth(bytes, most) {
  return bytes <= 0 ? 1 : 1 + 7 * (Math.log1p(bytes) / Math.log1p(Math.max(1, most))) ** 3;
}

function graphStyle() {
  const ink = css("--ink"), back = css("--back"), dark = document.documentElement.dataset.theme === "dark";
  const fillOf = (e) => (e.data("kind") === "task" ? css("--task") : dark ? back : colorOf(e.data("pattern")).fill);
  return [
    { selector: "node", style: { label: "data(label)", "text-wrap": "wrap", "text-valign": "center", color: ink,
      "font-size": 12, "line-height": 1.25, width: "data(w)", height: "data(h)", shape: "rectangle", "background-color": fillOf,
      "border-width": 2, "border-color": (e) => (e.data("kind") === "task" ? css("--soft") : colorOf(e.data("pattern")).line),
      "border-style": (e) => (e.data("role") === "input" ? "dashed" : e.data("role") === "output" ? "double" : "solid"),
      "text-outline-width": 0 } },
    { selector: 'node[kind = "task"]', style: { shape: "round-rectangle", "font-weight": "bold" } },
    { selector: 'node[role = "output"]', style: { "border-width": 5 } },
    { selector: "edge", style: { width: "data(width)", "line-color": (e) => colorOf(e.data("pattern")).line,
      "target-arrow-color": (e) => colorOf(e.data("pattern")).line, "target-arrow-shape": "triangle", "arrow-scale": 0.9,
      "curve-style": (e) => (e.scratch("controlPointWeights") ? "unbundled-bezier" : "bezier"), "edge-distances": "intersection",
      "control-point-weights": (e) => e.scratch("controlPointWeights") || [0.5],
      "control-point-distances": (e) => e.scratch("controlPointDistances") || [0], "line-style": (e) => (e.data("peek") ? "dotted" : e.data("via") === "data" ? "solid" : "dashed") } },
    { selector: ".hit", style: { "overlay-color": css("--accent"), "overlay-opacity": 0.25, "overlay-padding": 6 } },
    { selector: ":selected", style: { "overlay-color": css("--accent"), "overlay-opacity": 0.35, "overlay-padding": 8 } },
    { selector: ".faded", style: { opacity: 0.25 } },
  ];
}

function drawGraph() {
  const { nodes, edges } = graphElements();
  const most = Math.max(1, ...edges.map((e) => e.bytes));
  const measure = (label) => {
    const lines = label.split("\n");
    return { w: 18 + 7.2 * Math.max(4, ...lines.map((l) => l.length)), h: 12 + 16 * lines.length };
  };
  const elements = [...nodes.map((n) => ({ group: "nodes", data: { ...n, ...measure(n.label) } })),
    ...edges.map((e, i) => ({ group: "edges", data: { ...e, id: "e" + i, width: lineWidth(e.bytes, most) } }))];
  cy?.destroy();
  cy = TH.cytoscape({ container: $("canvas"), elements, style: graphStyle(), minZoom: 0.02, maxZoom: 3,
    boxSelectionEnabled: false });
  // Edges follow the bends of dagre, so that they pass around the boxes.
  // Two stages of one type can form a cycle: it is cut at the link with the fewest bytes.
  cy.layout({ name: "dagre", rankDir: "TB", acyclicer: "greedy",
    edgeWeight: (e) => (e.data("peek") ? 1 : 2 + Math.round(e.data("width"))), nodeSep: 26, rankSep: 40, edgeSep: 14, animate: false, fit: false,
    useDagreEdgeControlPoints: true, automaticDagreEdgeStyle: false }).run();
  cy.style(graphStyle());
  const box = cy.elements().boundingBox(), scale = Math.min(1.2, cy.width() / Math.max(1, box.w));
  $("canvas").style.height = `${Math.round(Math.min(860, Math.max(340, box.h * scale + 60)))}px`;
  cy.resize();
  cy.on("tap", "node", (event) => showNode(event.target.id()));
  cy.on("dbltap", "node", (event) => toggle(event.target.id()));
  readable();
  fill($("node-list").querySelector("ul"), nodes.map((n) => h("li", null,
    h("button", { type: "button", class: "link", onclick: () => showNode(n.id) }, n.label.replaceAll("\n", ", ")))));
  $("graph-status").textContent = `${plural(nodes.length, "node")}, ${plural(edges.length, "edge")}`;
}

function readable() {
  // A large graph fitted to the view is illegible: start at its top instead, at a legible size.
  cy.fit(undefined, 20);
  if (cy.zoom() > 1.2) { cy.zoom(1.2); cy.center(); }
  if (cy.zoom() < 0.6) {
    const box = cy.elements().boundingBox();
    cy.zoom(0.8);
    cy.pan({ x: cy.width() / 2 - 0.8 * (box.x1 + box.w / 2), y: 20 - 0.8 * box.y1 });
  }
}

function toggle(id) {
  const fold = id.includes(":") ? foldOf(id) : id;
  if (open.has(fold)) open.delete(fold);
  else if (nodeById.get(fold).count > 1 && members.get(fold).length) open.add(fold);
  else return;
  drawGraph();
  showNode(open.has(fold) ? elementOf(nodeById.get(fold).kind, members.get(fold)[0]) : fold);
}

function foldOf(id) {
  const [kind, i] = id.split(":");
  return at(DATA[kind === "task" ? "tasks" : "files"].node, Number(i));
}

function select(what) {
  const kind = "task" in what ? "task" : "file";
  const i = what[kind];
  focusOn(elementOf(kind, i));
  fill($("evidence"), kind === "task" ? taskPanel(i) : filePanel(i));
}

function focusOn(id) {
  cy.elements().unselect();
  const node = cy.getElementById(id);
  if (node.empty()) return;
  node.select();
  cy.animate({ center: { eles: node }, duration: matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 150 });
}

function showNode(id) {
  focusOn(id);
  if (id.includes(":")) {
    const [kind, i] = id.split(":");
    fill($("evidence"), kind === "task" ? taskPanel(Number(i)) : filePanel(Number(i)));
  } else fill($("evidence"), foldPanel(nodeById.get(id)));
}

function setupGraph() {
  const step = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
  const zoom = (factor) => cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });
  $("canvas").addEventListener("keydown", (event) => {
    if (step[event.key]) cy.panBy({ x: step[event.key][0], y: step[event.key][1] });
    else if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
    else if (event.key === "0") cy.fit(undefined, 20);
    else return;
    event.preventDefault();
  });
  $("zoom-in").addEventListener("click", () => zoom(1.25));
  $("zoom-out").addEventListener("click", () => zoom(0.8));
  $("fit").addEventListener("click", () => cy.fit(undefined, 20));
  $("fold").addEventListener("click", () => { open.clear(); drawGraph(); });
  $("unfold").addEventListener("click", () => {
    const folds = DATA.graph.nodes.filter((n) => n.count > 1 && members.get(n.id).length);
    const total = DATA.graph.nodes.reduce((sum, n) => sum + Math.min(n.count, MEMBERS), 0);
    if (total > 700) {
      $("graph-status").textContent = `${count(total)} nodes are too many to unfold: double-click single stages.`;
      return;
    }
    folds.forEach((n) => open.add(n.id));
    drawGraph();
  });
  const used = new Set(DATA.graph.nodes.map((n) => n.pattern).filter(Boolean));
  fill($("legend"), [...used].map((p) => h("li", null, swatch(p), shown(p))),
    h("li", null, "dashed frame: input"), h("li", null, "double frame: output"), h("li", null, "dotted line: header read"));
  $("search").addEventListener("input", search);
  $("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") $("results").querySelector("button")?.click();
    if (event.key === "Escape") { $("search").value = ""; search(); }
  });
  const best = DATA.graph.nodes.filter((n) => n.kind === "file").sort((a, b) => b.bytes - a.bytes)[0];
  fill($("evidence"), h("p", { class: "note" }, "Click a node, or pick one from a table, to see its evidence."),
    best ? foldPanel(best) : null);
}

function search() {
  const wanted = $("search").value.trim().toLowerCase();
  cy.elements().removeClass("hit faded");
  $("results").hidden = !wanted;
  if (!wanted) { $("graph-status").textContent = ""; return; }
  const hits = [];
  DATA.tasks.name.forEach((name, i) => { if (name.toLowerCase().includes(wanted)) hits.push({ task: i, name }); });
  DATA.files.path.forEach((name, i) => { if (name.toLowerCase().includes(wanted)) hits.push({ file: i, name }); });
  const marked = new Set(hits.map((hit) => ("task" in hit ? elementOf("task", hit.task) : elementOf("file", hit.file))));
  DATA.graph.nodes.forEach((n) => { if (n.label.toLowerCase().includes(wanted) && !open.has(n.id)) marked.add(n.id); });
  if (marked.size) cy.elements().addClass("faded");
  marked.forEach((id) => cy.getElementById(id).removeClass("faded").addClass("hit"));
  $("graph-status").textContent = hits.length ? `${plural(hits.length, "match")} in ${plural(marked.size, "node")}`.replace("matchs", "matches") : "no match";
  fill($("results"), hits.slice(0, 12).map((hit) => h("li", null,
    h("button", { type: "button", onclick: () => select(hit) }, hit.name))));
}
