// Timeline, flow between stages, byte ranges: ECharts on canvas, redrawn when the theme changes.
const charts = new Map();

function chart(place, option) {
  charts.get(place)?.dispose();
  const made = TH.echarts.init(place, null, { renderer: "canvas" });
  made.setOption({ animation: false, textStyle: { color: css("--ink"), fontFamily: getComputedStyle(document.body).fontFamily }, ...option });
  charts.set(place, made);
  return made;
}

// Tooltips are DOM nodes: names from the trace never become HTML.
function tip(...lines) {
  return h("div", { style: { whiteSpace: "pre-line" } }, lines.filter(Boolean).join("\n"));
}

function tooltipStyle() {
  return { backgroundColor: css("--panel"), borderColor: css("--line"), textStyle: { color: css("--ink") }, confine: true };
}

const axis = () => ({ axisLine: { lineStyle: { color: css("--line") } }, axisLabel: { color: css("--soft") },
  splitLine: { lineStyle: { color: css("--line"), opacity: 0.6 } } });

// 90 s is 1:30 min on an axis; whole minutes and hours go without the rest.
function shortTime(value) {
  if (value < 60) return Number(value.toPrecision(3)) + " s";
  const hours = Math.floor(value / 3600), minutes = Math.floor(value / 60) % 60, rest = Math.round(value % 60);
  if (hours) return minutes ? `${hours} h ${minutes}` : `${hours} h`;
  return rest ? `${minutes}:${String(rest).padStart(2, "0")} min` : `${minutes} min`;
}

function drawTimeline() {
  const { bars, hosts, types, io, end_s } = DATA.timeline;
  const place = $("timeline-chart"), lanes = hosts.reduce((sum, x) => sum + x.lanes, 0) || 1;
  const high = Math.min(460, Math.max(90, (lanes + 1) * 17));
  place.style.height = `${high + 250}px`;
  place.setAttribute("aria-label", `Timeline of ${plural(bars.length, "task")} on ${plural(hosts.length, "host")} over ${seconds(end_s)}. The tables of stages and tasks have the same figures.`);
  const many = new Set(io.series.map((s) => s.host)).size > 4;
  const summed = (kind) => io.series.filter((s) => s.kind === kind)
    .reduce((sum, s) => sum.map((v, i) => v + s.bytes[i]), new Array(io.series[0]?.bytes.length || 0).fill(0));
  const lines = many ? ["read", "write"].map((kind) => ({ host: "all hosts", kind, bytes: summed(kind) })) : io.series;
  const top = Math.max(1, ...lines.flatMap((s) => s.bytes)) / io.step_s;
  const unit = 2 ** Math.floor(Math.log2(top / 1.5));
  const every = timeStep(end_s), took = DATA.run.duration_s;
  $("timeline-note").textContent = took > 1.1 * end_s ? `The run took ${seconds(took)}; the last recorded task ended after ${seconds(end_s)}.` : "";
  fill($("timeline-legend"), types.map((t, k) => h("li", null, h("span", { class: "swatch", style: { background: typeColor(k) } }), t)));
  const rect = (params, api) => {
    const from = api.coord([api.value(1), api.value(0)]), to = api.coord([api.value(2), api.value(0)]);
    const tall = Math.max(1, api.size([0, 1])[1] * 0.8);
    const shape = TH.echarts.graphic.clipRectByRect({ x: from[0], y: from[1] - tall / 2, width: Math.max(1, to[0] - from[0]), height: tall },
      { x: params.coordSys.x, y: params.coordSys.y, width: params.coordSys.width, height: params.coordSys.height });
    const failed = api.value(4);
    const label = shape && shape.width > 56 && shape.height >= 10 ? shorten(types[api.value(3)], Math.floor(shape.width / 7)) : "";
    return shape && { type: "rect", shape, textContent: label ? { style: { text: label, fill: "#000", fontSize: 11 } } : undefined,
      textConfig: { position: "inside" }, style: { fill: typeColor(api.value(3)), stroke: failed ? css("--bad") : null, lineWidth: failed ? 2 : 0 } };
  };
  chart(place, {
    tooltip: { ...tooltipStyle(), trigger: "item" },
    legend: lines.length ? { bottom: 34, textStyle: { color: css("--ink") }, data: lines.map((s) => `${s.kind} ${s.host}`) } : undefined,
    grid: [{ left: 90, right: 24, top: 10, height: high, outerBoundsMode: "none" }, { left: 90, right: 24, top: high + 40, height: 110, outerBoundsMode: "none" }],
    xAxis: [{ type: "value", min: 0, max: end_s, interval: every, gridIndex: 0, ...axis(), axisLabel: { show: false } },
      { type: "value", min: 0, max: end_s, interval: every, gridIndex: 1, ...axis(), axisLabel: { color: css("--soft"), hideOverlap: true, showMaxLabel: false, formatter: (v) => shortTime(v) } }],
    yAxis: [{ type: "value", inverse: true, min: -1, max: lanes, gridIndex: 0, ...axis(), splitLine: { show: false },
      interval: 1, axisTick: { show: false }, axisLabel: { color: css("--soft"), formatter: (v) => {
        const host = hosts.find((x) => Math.floor(x.first + (x.lanes - 1) / 2) === v);
        return host ? shorten(host.name, 12) : ""; } } },
    { type: "value", gridIndex: 1, ...axis(), max: Math.ceil(top / unit) * unit, interval: unit, axisLabel: { color: css("--soft"), formatter: (v) => size(v) + "/s" } }],
    dataZoom: [{ type: "inside", xAxisIndex: [0, 1], filterMode: "weakFilter", zoomOnMouseWheel: "ctrl" },
      { type: "slider", xAxisIndex: [0, 1], filterMode: "weakFilter", bottom: 4, height: 22, textStyle: { color: css("--soft") }, labelFormatter: (v) => seconds(v) }],
    series: [{ type: "custom", renderItem: rect, xAxisIndex: 0, yAxisIndex: 0, encode: { x: [1, 2], y: 0 },
      data: bars.map((b) => [b[0], b[1], b[2], b[3], b[5]]), clip: true, progressive: 4000,
      tooltip: { formatter: (p) => { const b = bars[p.dataIndex]; return tip(b[4], types[b[3]], `${seconds(b[1])} to ${seconds(b[2])} (${seconds(b[2] - b[1])})`, b[5] ? "failed" : ""); } } },
    ...lines.map((s, k) => ({ type: "line", name: `${s.kind} ${s.host}`, xAxisIndex: 1, yAxisIndex: 1, showSymbol: false, step: "middle",
      color: CYCLE[(many ? k : [...new Set(lines.map((x) => x.host))].indexOf(s.host) * 2 + (s.kind === "write" ? 1 : 0)) % CYCLE.length],
      lineStyle: { type: s.kind === "write" ? "dashed" : "solid", width: 1.8 },
      data: s.bytes.map((v, i) => [(i + 0.5) * io.step_s, v / io.step_s]),
      tooltip: { formatter: (p) => tip(p.seriesName, `${size(p.value[1])}/s at ${seconds(p.value[0])}`) } }))],
  });
}

function drawFlow() {
  const { stages, links, back, dropped } = DATA.sankey, place = $("flow-chart");
  const notes = ["Width is bytes, colour the pattern of most of them."];
  if (back) notes.push(`${size(back)} flow within a stage or to an earlier one and are not drawn.`);
  if (dropped) notes.push(`${size(dropped)} belong to further stages and are not drawn.`);
  $("flow-note").textContent = notes.join(" ");
  if (!links.length) { fill(place, h("p", { class: "note" }, "No bytes went from stage to stage.")); place.style.height = "auto"; return; }
  const id = (n) => (n === -1 ? "in" : n === -2 ? "out" : "s" + n);
  const name = (key) => (key === "in" ? "inputs" : key === "out" ? "outputs" : stages[Number(key.slice(1))]);
  const used = [...new Set(links.flatMap((l) => [id(l.source), id(l.target)]))];
  place.style.height = `${Math.min(760, Math.max(320, used.length * 42))}px`;
  place.setAttribute("aria-label", "Flow of bytes: " + links.slice(0, 12).map((l) => `${name(id(l.source))} to ${name(id(l.target))} ${size(l.bytes)}`).join("; "));
  chart(place, {
    tooltip: { ...tooltipStyle(), trigger: "item", formatter: (p) => (p.dataType === "edge"
      ? tip(`${name(p.data.source)} → ${name(p.data.target)}`, `${size(p.data.value)} in ${plural(p.data.files, "file")}`, shown(p.data.pattern))
      : tip(name(p.name), size(p.value))) },
    series: [{ type: "sankey", left: 8, right: 120, top: 8, bottom: 8, nodeGap: 14, nodeWidth: 14, draggable: false,
      emphasis: { focus: "adjacency" }, nodeAlign: "justify",
      label: { color: css("--ink"), textBorderColor: css("--back"), textBorderWidth: 3, formatter: (p) => shorten(name(p.name), 22) },
      data: used.map((key, k) => ({ name: key, itemStyle: { color: key === "in" || key === "out" ? GREY.line : css("--soft") } })),
      links: links.map((l) => ({ source: id(l.source), target: id(l.target), value: l.bytes, files: l.files, pattern: l.pattern,
        lineStyle: { color: colorOf(l.pattern).line, opacity: 0.5, curveness: 0.5 } })) }],
  });
}

function drawRanges() {
  const body = $("ranges-body");
  if (!DATA.heat.length) {
    fill(body, h("p", { class: "note" }, "This run has no file whose ranges decide its pattern."));
    return;
  }
  const choice = h("select", { id: "ranges-file" }, DATA.heat.map((m, i) => h("option", { value: i }, `${m.path} (${shown(m.pattern)}, ${size(m.size_bytes)})`)));
  const place = h("div", { class: "chart", role: "img", id: "ranges-chart" });
  const note = h("p", { class: "note" });
  fill(body, h("div", { class: "toolbar" }, h("label", null, "File ", choice)), note, place);
  const draw = () => {
    const map = DATA.heat[Number(choice.value)], step = map.size_bytes / map.bins;
    const verb = map.pattern === "gather" ? "written" : "read";
    place.style.height = `${Math.max(180, 70 + map.tasks.length * 18)}px`;
    place.setAttribute("aria-label", `${plural(map.tasks.length, "task")} have ${verb} parts of ${map.path}`);
    note.textContent = `Share of each of ${map.bins} equal parts of the file that a task has ${verb}`
      + (map.more_tasks ? `; ${plural(map.more_tasks, "more task")} not shown.` : ".");
    const empty = css("--back"), full = colorOf(map.pattern).line;
    chart(place, {
      tooltip: { ...tooltipStyle(), formatter: (p) => tip(map.tasks[p.value[1]], `${size(p.value[0] * step)} to ${size((p.value[0] + 1) * step)}`, `${Math.round(100 * p.value[2])}% ${verb}`) },
      grid: { left: 150, right: 24, top: 10, bottom: 44 },
      xAxis: { type: "category", data: Array.from({ length: map.bins }, (_, i) => size(i * step)), ...axis(), axisLabel: { color: css("--soft"), interval: (i) => i % 8 === 0, hideOverlap: true } },
      yAxis: { type: "category", inverse: true, data: map.tasks.map((_, i) => i), ...axis(), axisLabel: { color: css("--soft"), interval: 0, formatter: (v) => shorten(map.tasks[Number(v)], 20) } },
      visualMap: { min: 0, max: 1, show: false, inRange: { color: [empty, full] } },
      series: [{ type: "heatmap", data: map.cells, itemStyle: { borderColor: css("--back"), borderWidth: 1 } }],
    });
  };
  choice.addEventListener("change", draw);
  drawRanges.again = draw;
  draw();
}
