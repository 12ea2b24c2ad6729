// What a reader should know after ten seconds.
function drawSummary() {
  const { run, totals } = DATA;
  $("title").textContent = DATA.title;
  fill($("troubles"), (run.troubles || []).map((text) => h("p", { class: "trouble" }, text)));
  $("decision").textContent = DATA.decision;
  $("decision").hidden = !DATA.decision;
  const hosts = run.hosts.length === 1 ? "one host" : plural(run.hosts.length, "host");
  $("what").textContent = `${plural(totals.tasks, "task")} of ${plural(totals.types, "type")} passed `
    + `${size(totals.handed_bytes)} to each other through ${plural(totals.files, "file")}, on ${hosts} in `
    + `${seconds(run.duration_s)}${totals.failed ? `; ${plural(totals.failed, "task")} failed` : ""}. ${DATA.io}`;
  const card = (value, label, kind) => h("li", { class: kind || null }, h("strong", null, value), h("span", null, label));
  const { baseline, all } = DATA;
  const fewer = baseline && all && all.network_bytes > 0.05 * baseline.network_bytes;
  fill($("result"),
    baseline ? card(all.significant ? `${seconds(baseline.makespan_s)} \u2192 ${seconds(baseline.makespan_s - all.makespan_s)}` : "no significant change", `makespan${all.significant ? `, \u2212${Math.round(100 * all.makespan_s / baseline.makespan_s)}%` : ""}`, all.significant ? "save" : null) : null,
    baseline ? card(fewer ? `${size(baseline.network_bytes)} \u2192 ${size(baseline.network_bytes - all.network_bytes)}` : "no significant change", `network traffic${fewer ? `, \u2212${Math.round(100 * all.network_bytes / baseline.network_bytes)}%` : ""}`, fewer ? "save" : null) : null,
    card(DATA.coverage.replace(/^trace /, "").replace(/ \(.*/, ""), "trace"));
  fill($("conditions"), [...DATA.result, DATA.recorded].filter(Boolean).map((text) => h("div", null, text)));
  drawActions();
  fill($("cards"),
    card(size(totals.read_bytes), "read"), card(size(totals.written_bytes), "written"),
    card(size(totals.handed_bytes), "from task to task"),
    card(size(DATA.reclaimable_bytes), "reclaimable storage", "save"),
    card((100 * run.completeness.score).toFixed(run.completeness.score === 1 ? 0 : 1) + " %", "trace coverage"));
  const total = DATA.mix.reduce((sum, m) => sum + m.bytes, 0) || 1;
  fill($("mix"),
    h("div", { class: "mix", role: "img", "aria-label": DATA.mix.map((m) => `${shown(m.pattern)} ${Math.round(100 * m.bytes / total)}%`).join(", ") },
      DATA.mix.map((m) => h("div", { title: shown(m.pattern), style: { width: 100 * m.bytes / total + "%", background: colorOf(m.pattern).line } }))),
    h("ul", { class: "legend" }, DATA.mix.map((m) => h("li", null, swatch(m.pattern),
      `${shown(m.pattern)}: ${size(m.bytes)} in ${plural(m.files, "file")}`))));
  const top = DATA.best;
  fill($("top"), top.length ? top.map((f) => h("li", null, h("span", { class: "saved" }, f.saves), ": ",
    f.files > 1 ? count(f.files) + " \u00d7 " : "", h("span", { class: "mono" }, f.template),
    ` \u2013 ${shown(f.pattern)}: ${[f.why, f.advice].filter(Boolean).join(": ")}`))
    : [h("li", null, "No savings found.")]);
  $("footer").textContent = `${DATA.tool}, recorded by ${run.collector || "?"}, started ${run.started || "?"}. `
    + "This file is self-contained and makes no network requests.";
}

// At most three, each with the lines for the workflow file and its finding.
function drawActions() {
  const todo = DATA.actions;
  $("todo").hidden = !todo.length;
  fill($("actions"), todo.map((a) => h("li", null, a.text, a.saves ? (a.saves === "correctness" ? ": " : ": saves ") : "",
    h("strong", null, a.saves), " ",
    h("a", { href: "#findings" }, a.code),
    a.edit.length ? h("div", { class: "edit" }, copyButton(a.edit.join("\n"), "Copy lines"), h("pre", null, a.edit.join("\n"))) : null)));
}

function drawFindings() {
  const all = DATA.findings;
  if (!all.length) { fill($("findings-table"), h("p", null, "No findings.")); return; }
  const every = h("div"), count_all = DATA.folded.reduce((sum, rule) => sum + rule.count, 0);
  if (DATA.folded.length < all.length) {
    fill($("findings-table"), h("div", { id: "findings-folded" }), h("details", null,
      h("summary", null, `All ${plural(count_all, "finding")}`), every));
    foldedFindings($("findings-folded"), DATA.folded);
  } else fill($("findings-table"), every);
  makeTable(every, "Findings", [
    { name: "Rule", get: (i) => `${all[i].code} ${all[i].name} ${all[i].severity}`, show: (i) => [
      h("span", { class: "nowrap severity-" + all[i].severity }, `${all[i].code} ${all[i].severity}`), h("br"), all[i].name] },
    { name: "Files", get: (i) => all[i].template, show: (i) => h("code", null, all[i].template) },
    { name: "What", get: (i) => all[i].message, long: true },
    { name: "Saves", get: (i) => (all[i].gain ? all[i].gain.network_bytes : 0), show: (i) => gainText(all[i].gain) },
    { name: "Storage", num: true, get: (i) => all[i].saves.storage_bytes, show: (i) => (all[i].saves.storage_bytes ? size(all[i].saves.storage_bytes) : "") },
    { name: "Confidence", num: true, get: (i) => all[i].confidence, show: (i) => all[i].confidence.toFixed(2) },
    { name: "Remedy", long: true, get: (i) => all[i].fix, show: (i) => remedy(all[i].fix) },
  ], all.length);
}

// One row for each rule: what all its findings save, and the largest of them.
function foldedFindings(place, rules) {
  const first = (i) => rules[i].first;
  makeTable(place, "Findings by rule", [
    { name: "Rule", get: (i) => `${first(i).code} ${first(i).name} ${first(i).severity}`, show: (i) => [
      h("span", { class: "nowrap severity-" + first(i).severity }, `${first(i).code} ${first(i).severity}`), h("br"), first(i).name] },
    { name: "Findings", num: true, get: (i) => rules[i].count },
    { name: "Storage", num: true, get: (i) => rules[i].saves.storage_bytes, show: (i) => (rules[i].saves.storage_bytes ? size(rules[i].saves.storage_bytes) : "") },
    { name: "The most important", long: true, get: (i) => `${first(i).template} ${first(i).message}`, show: (i) => [
      ...(first(i).template ? [h("code", null, first(i).template), h("br")] : []), first(i).message,
      rules[i].first_saves ? h("div", { class: "note" }, rules[i].first_saves) : null] },
    { name: "Remedy", long: true, get: (i) => first(i).fix, show: (i) => remedy(first(i).fix) },
  ], rules.length);
}

// The command that writes hints is long and the same for many findings.
function remedy(fix) {
  if (fix.startsWith("tracehint hints ")) return [h("a", { href: "#hints", title: fix }, "Set the hints below"), " ", copyButton(fix, "Copy command")];
  return fix.startsWith("tracehint ") ? [h("code", null, fix), " ", copyButton(fix)] : [fix];
}

const WHEN = { create: "before the first byte", before_read: "before the readers start", any: "at any time" };

function hintTable(place, rules, caption) {
  makeTable(place, caption, [
    { name: "Files", get: (i) => rules[i].template, show: (i) => h("code", null, rules[i].template) },
    { name: "Pattern", get: (i) => shown(rules[i].pattern), show: (i) => h("span", { class: "nowrap" }, swatch(rules[i].pattern), shown(rules[i].pattern)) },
    { name: "From and to", long: true, get: (i) => `${rules[i].producer || "input"} \u2192 ${rules[i].consumers.join(", ") || "no task"}` },
    { name: "Hints", long: true, get: (i) => rules[i].hints.map((x) => `${x.name}=${x.value}`).join(" "),
      show: (i) => rules[i].hints.map((x) => h("div", { class: "hint-line" }, h("code", null, `${x.name}=${x.value}`),
        h("span", { class: "note" }, WHEN[x.when] || shown(x.when)), copyButton(`${x.name}=${x.value}`))) },
    { name: "Files seen", num: true, get: (i) => rules[i].evidence.files, show: (i) => (rules[i].evidence.files ? count(rules[i].evidence.files) : "") },
    { name: "Saves", get: (i) => (rules[i].gain ? rules[i].gain.network_bytes : 0), show: (i) => gainText(rules[i].gain) },
    { name: "Confidence", num: true, get: (i) => rules[i].confidence, show: (i) => rules[i].confidence.toFixed(2) },
  ], rules.length);
}

function drawHints() {
  const seen = DATA.hints.filter((r) => r.seen), others = DATA.hints.filter((r) => !r.seen);
  if (!DATA.hints.length) {
    fill($("hints-body"), h("p", { class: "note" }, "No hint was derived from this run."));
    return;
  }
  const first = h("div"), second = h("div");
  fill($("hints-body"), h("p", { class: "note" }, "Rules for files that do not exist yet: {n} is any number, {name} any name. ",
    h("code", null, "tracehint emit"), " writes them as a script for a store or into the workflow, ", h("code", null, "tracehint apply"), " sets them."), first,
  others.length ? h("details", null, h("summary", null, `${plural(others.length, "rule")} for other file names`), second) : null);
  if (seen.length) hintTable(first, seen, "Hints for names of this run");
  if (others.length) hintTable(second, others, "Hints for other names");
}

function drawRecord() {
  const { completeness, lost_events, collector, data_roots, hosts } = DATA.run;
  const rows = [["Collector", collector || "?"], ["Complete", (100 * completeness.score).toFixed(1) + " %"],
    ["Lost events", count(lost_events || 0)], ["Cannot see", completeness.blind_to.join(", ") || "nothing known"],
    ["Hosts", hosts.join(", ")], ["Data roots", data_roots.join(", ")]];
  const left = Object.entries({ ...DATA.graph.left_out, ...DATA.left_out }).map(([k, v]) => (k.endsWith("s") ? plural(v, shown(k).slice(0, -1)) : `${count(v)} ${shown(k)}`));
  if (left.length) rows.push(["Not on this page", left.join(", ")]);
  fill($("record-body"), h("dl", null, rows.flatMap(([k, v]) => [h("dt", null, k), h("dd", null, v)])),
    h("ul", null, completeness.notes.map((n) => h("li", null, n))));
}

function drawTables() {
  const { stages, files, tasks } = DATA;
  // values stated by engines; no column if there are none
  const stated = (key, name, get, show) => (stages.some((s) => s[key] !== undefined)
    ? [{ name, num: true, get: (i) => get(stages[i]) ?? null, show: (i) => ((get(stages[i]) ?? null) === null ? "-" : show(get(stages[i]))) }] : []);
  makeTable($("stages-table"), "Stages", [
    { name: "Task type", get: (i) => stages[i].type },
    { name: "Tasks", num: true, get: (i) => stages[i].tasks, show: (i) => count(stages[i].tasks) },
    { name: "First start", num: true, get: (i) => stages[i].start_s, show: (i) => seconds(stages[i].start_s) },
    { name: "Last end", num: true, get: (i) => stages[i].end_s, show: (i) => seconds(stages[i].end_s) },
    { name: "Median", num: true, get: (i) => stages[i].median_s, show: (i) => seconds(stages[i].median_s) },
    { name: "Longest", num: true, get: (i) => stages[i].longest_s, show: (i) => seconds(stages[i].longest_s) },
    { name: "Task time", num: true, get: (i) => stages[i].task_s, show: (i) => seconds(stages[i].task_s) },
    { name: "CPU time", num: true, get: (i) => stages[i].cpu_s, show: (i) => (stages[i].cpu_s === null ? "-" : seconds(stages[i].cpu_s)) },
    { name: "I/O wait", num: true, get: (i) => stages[i].io_wait_s, show: (i) => (stages[i].io_wait_s === null ? "-" : seconds(stages[i].io_wait_s)) },
    { name: "Read", num: true, get: (i) => stages[i].read_bytes, show: (i) => size(stages[i].read_bytes) },
    { name: "Written", num: true, get: (i) => stages[i].written_bytes, show: (i) => size(stages[i].written_bytes) },
    ...stated("cores", "Cores requested", (s) => s.cores, count),
    ...stated("cores", "Cores used", (s) => (s.cpu_s === null || !s.task_s ? null : s.cpu_s / s.task_s), (v) => v.toFixed(2)),
    ...stated("memory_bytes", "Memory requested", (s) => s.memory_bytes, size),
    ...stated("peak_bytes", "Peak memory per task", (s) => s.peak_bytes, size),
  ], stages.length);
  makeTable($("files-table"), "Files", [
    { name: "File", get: (i) => files.path[i], show: (i) => h("button", { type: "button", class: "link mono", onclick: () => { select({ file: i }); goTo("graph"); } }, files.path[i]) },
    { name: "Version", num: true, get: (i) => files.version[i] },
    { name: "Role", get: (i) => at(files.role, i) },
    { name: "Pattern", get: (i) => shown(at(files.pattern, i)), show: (i) => (at(files.pattern, i) ? h("span", { class: "nowrap" }, swatch(at(files.pattern, i)), shown(at(files.pattern, i))) : "") },
    { name: "Size", num: true, get: (i) => files.size_bytes[i], show: (i) => size(files.size_bytes[i]) },
    { name: "Confidence", num: true, get: (i) => files.confidence[i], show: (i) => files.confidence[i].toFixed(2) },
  ], files.path.length);
  makeTable($("tasks-table"), "Tasks", [
    { name: "Task", get: (i) => tasks.name[i], show: (i) => h("button", { type: "button", class: "link", onclick: () => { select({ task: i }); goTo("graph"); } }, tasks.name[i]) },
    { name: "Host", get: (i) => at(tasks.host, i) },
    { name: "Start", num: true, get: (i) => tasks.start_s[i], show: (i) => seconds(tasks.start_s[i]) },
    { name: "End", num: true, get: (i) => tasks.end_s[i], show: (i) => seconds(tasks.end_s[i]) },
    { name: "Status", num: true, get: (i) => tasks.exit_status[i] },
    { name: "Attempt", num: true, get: (i) => tasks.attempt[i] },
    { name: "Read", num: true, get: (i) => tasks.read_bytes[i], show: (i) => size(tasks.read_bytes[i]) },
    { name: "Written", num: true, get: (i) => tasks.written_bytes[i], show: (i) => size(tasks.written_bytes[i]) },
  ], tasks.name.length);
}
