// Compare: what hints did between an earlier run and this one.
function drawCompare() {
  const found = DATA.compare;
  if (!found) return;
  for (const hidden of document.querySelectorAll("#compare, a[href='#compare']")) hidden.hidden = false;
  $("compare-sentence").textContent = found.sentence;
  $("compare-doubt").textContent = found.doubt;
  const hints = found.hints, measures = [
    ["Seconds", found.seconds, seconds], ["Read from own nodes", found.local_bytes, size],
    ["Read from other nodes", found.remote_bytes, size],
  ];
  const cell = (value, show) => (value === null ? "not known" : show(value));
  makeTable($("compare-measures"), "Before, after and predicted", [
    { name: "Measure", get: (i) => measures[i][0] },
    ...["before", "after", "predicted"].map((side) => (
      { name: side, num: true, get: (i) => measures[i][1][side], show: (i) => cell(measures[i][1][side], measures[i][2]) })),
  ], measures.length);
  makeTable($("compare-types"), "Seconds and bytes by task type", [
    { name: "Task type", get: (i) => found.types[i].type },
    ...[["Tasks", "tasks", count], ["Seconds", "seconds", seconds], ["Read", "read_bytes", size],
      ["Written", "written_bytes", size]].flatMap(([name, key, show]) => ["before", "after"].map((side) => (
      { name: `${name} ${side}`, num: true, get: (i) => found.types[i][key][side],
        show: (i) => cell(found.types[i][key][side], show) }))),
  ], found.types.length);
  $("compare-hints").textContent = `${count(hints.in_force)} of ${plural(hints.wanted, "hint")} in force, `
    + `${count(hints.lost)} lost, ${count(hints.impossible)} not possible.`;
  if (hints.reasons.length) makeTable($("compare-reasons"), "Hints not in force", [
    { name: "State", get: (i) => hints.reasons[i].state }, { name: "Hint", get: (i) => hints.reasons[i].hints },
    { name: "Why", long: true, get: (i) => hints.reasons[i].reason },
    { name: "Count", num: true, get: (i) => hints.reasons[i].count },
    { name: "For example", long: true, get: (i) => hints.reasons[i].example },
  ], hints.reasons.length);
  fill($("compare-drift"), found.drift.map((text) => h("li", null, text)));
}
