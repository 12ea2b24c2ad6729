// The evidence panel: what is known of a fold, a task or a file.
const asTask = new Map(), asFile = new Map();
DATA.pairs.task.forEach((task, k) => {
  const file = DATA.pairs.file[k];
  (asTask.get(task) || asTask.set(task, []).get(task)).push(k);
  (asFile.get(file) || asFile.set(file, []).get(file)).push(k);
});

function facts(rows) {
  return h("dl", null, rows.filter(([, v]) => v !== "" && v !== null && v !== undefined)
    .flatMap(([k, v]) => [h("dt", null, k), h("dd", null, v)]));
}

function pickList(title, entries, limit = 40) {
  if (!entries.length) return null;
  return h("div", null, h("h4", null, `${title} (${count(entries.length)})`), h("ul", { class: "plain" },
    entries.slice(0, limit).map((e) => h("li", null,
      h("button", { type: "button", class: "link", onclick: e.go }, e.name), e.note ? ` ${e.note}` : "")),
    entries.length > limit ? h("li", null, `… ${count(entries.length - limit)} more`) : null));
}

const fileEntry = (i, note) => ({ name: DATA.files.path[i], note, go: () => select({ file: i }) });
const taskEntry = (i, note) => ({ name: DATA.tasks.name[i], note, go: () => select({ task: i }) });

function foldButton(id) {
  const fold = id.includes(":") ? foldOf(id) : id, node = nodeById.get(fold);
  if (node.count < 2 || !members.get(fold).length) return null;
  return h("button", { type: "button", onclick: () => toggle(id) }, open.has(fold) ? "Fold" : "Unfold");
}

// By name, as people count: a_2 before a_10.
const order = new Intl.Collator("en", { numeric: true });
const inOrder = (own, names) => (own.length > 5000 ? own : [...own].sort((a, b) => order.compare(names[a], names[b])));

function foldPanel(n) {
  const own = members.get(n.id);
  if (n.kind === "file" && n.count === 1 && own.length === 1) return filePanel(own[0]);
  if (n.kind === "task" && n.count === 1 && own.length === 1) return taskPanel(own[0]);
  const rows = n.kind === "task"
    ? [["tasks", count(n.count)], ["from", seconds(n.start_s)], ["to", seconds(n.end_s)], ["bytes", size(n.bytes)]]
    : [["files", count(n.count)], ["bytes", size(n.bytes)], ["role", n.role], ["pattern", n.pattern ? h("span", null, swatch(n.pattern), shown(n.pattern)) : "none"],
      ["confidence", n.confidence.toFixed(2)]];
  return [h("h3", { class: "mono" }, n.kinds > 1 ? `${n.label} and ${plural(n.kinds - 1, "other kind")}` : n.label), foldButton(n.id), facts(rows),
    pickList(n.kind === "task" ? "Tasks" : "Files", inOrder(own, n.kind === "task" ? DATA.tasks.name : DATA.files.path).map((i) => (n.kind === "task"
      ? taskEntry(i, seconds((DATA.tasks.end_s[i] ?? DATA.tasks.start_s[i]) - DATA.tasks.start_s[i])) : fileEntry(i, size(DATA.files.size_bytes[i])))))]
    .filter(Boolean);
}

function taskPanel(i) {
  const t = DATA.tasks, k = asTask.get(i) || [], { file, bytes, kind } = DATA.pairs;
  return [h("h3", null, t.name[i]), foldButton("task:" + i), facts([["command", h("code", null, at(t.command, i))], ["host", at(t.host, i)],
    ["start", seconds(t.start_s[i])], ["end", seconds(t.end_s[i])], ["status", t.exit_status[i]],
    ["attempt", t.attempt[i] > 1 ? t.attempt[i] : ""], ["read", size(t.read_bytes[i])], ["written", size(t.written_bytes[i])]]),
  pickList("Reads", k.filter((p) => kind[p] > 0).map((p) => fileEntry(file[p], size(bytes[p]) + (kind[p] === 2 ? ", header read" : "")))),
  pickList("Writes", k.filter((p) => kind[p] === 0).map((p) => fileEntry(file[p], size(bytes[p]))))].filter(Boolean);
}

// One row per number: those of a group (what the costs are, what lowers the confidence) after its name.
function evidenceRows(evidence, before = "") {
  return Object.entries(evidence).flatMap(([name, value]) => (value && typeof value === "object" && !Array.isArray(value)
    ? evidenceRows(value, `${shown(name)}: `) : [[before + shown(name), evidenceText(name, value)]]));
}

const IN_BYTES = /bytes|network|wait$/;

function evidenceText(name, value) {
  if (typeof value === "number" && IN_BYTES.test(name)) return size(value);
  if (typeof value === "number") return Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(4)));
  return typeof value === "string" ? value : JSON.stringify(value);
}

function filePanel(i) {
  const f = DATA.files, k = asFile.get(i) || [], { task, bytes, kind } = DATA.pairs, pattern = at(f.pattern, i);
  const share = (p) => (f.size_bytes[i] ? `, ${Math.round(100 * bytes[p] / f.size_bytes[i])}%` : "");
  const evidence = evidenceRows(at(f.evidence, i) || {});
  return [h("h3", { class: "mono" }, f.path[i]), foldButton("file:" + i), facts([["role", at(f.role, i)], ["size", size(f.size_bytes[i])],
    ["version", f.version[i] > 0 ? f.version[i] : ""], ["deleted", f.deleted[i] ? "yes" : ""],
    ["pattern", pattern ? h("span", null, swatch(pattern), shown(pattern)) : "none"], ["also", shown(at(f.others, i))],
    ["confidence", f.confidence[i].toFixed(2)], ["placement", at(f.placement, i)],
    ["runner-up", at(f.runner_up, i)]]),
  evidence.length ? h("div", null, h("h4", null, "Evidence"), facts(evidence)) : null,
  pickList("Written by", k.filter((p) => kind[p] === 0).map((p) => taskEntry(task[p], size(bytes[p])))),
  pickList("Read by", k.filter((p) => kind[p] > 0).map((p) => taskEntry(task[p], size(bytes[p]) + share(p) + (kind[p] === 2 ? ", header read" : ""))))]
    .filter(Boolean);
}
