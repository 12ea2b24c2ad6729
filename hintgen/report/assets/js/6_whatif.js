// What if: the sweep, and the predicted timeline beside the recorded one on the same axis of time.
function drawWhatIf() {
  const what = DATA.whatif;
  if (!what) return;
  for (const hidden of document.querySelectorAll("#what-if, a[href='#what-if']")) hidden.hidden = false;
  drawSweep(what);
  drawBoth(what);
}

function drawSweep(what) {
  const place = $("whatif-chart"), names = [...new Set(what.points.map((p) => p.placement))];
  const nodes = [...new Set(what.points.map((p) => p.nodes))].sort((a, b) => a - b);
  const recorded = what.recorded_s ? [[0, what.recorded_s], [nodes.length - 1, what.recorded_s]] : [];
  place.style.height = "300px";
  place.setAttribute("aria-label", "Predicted times: " + what.points.slice(0, 20).map((p) => `${p.name} ${seconds(p.seconds)}`).join("; "));
  $("whatif-note").textContent = `Best by time: ${what.best.seconds}.` + (what.best.cost ? ` Cheapest: ${what.best.cost}.` : "")
    + (what.left_out ? ` ${plural(what.left_out, "configuration")} not drawn.` : "") + ` Assumed: ${what.assumptions.join("; ") || "nothing"}.`;
  const whisker = (params, api) => {
    const x = api.coord([api.value(0), 0])[0] + 6 * (api.value(3) - (names.length - 1) / 2);
    const [low, high] = [api.value(1), api.value(2)].map((v) => api.coord([api.value(0), v])[1]);
    const line = (x1, y1, x2, y2) => ({ type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: typeColor(api.value(3)), lineWidth: 1.5 } });
    return { type: "group", children: [line(x, low, x, high), line(x - 3, low, x + 3, low), line(x - 3, high, x + 3, high)] };
  };
  chart(place, {
    tooltip: { ...tooltipStyle(), trigger: "item" },
    legend: { bottom: 0, textStyle: { color: css("--ink") }, data: [...names, "recorded"] },
    grid: { left: 70, right: 24, top: 16, bottom: 70 },
    xAxis: { type: "category", data: nodes, name: "nodes", nameLocation: "middle", nameGap: 26, nameTextStyle: { color: css("--soft") }, ...axis() },
    yAxis: { type: "value", min: 0, ...axis(), axisLabel: { color: css("--soft"), formatter: shortTime } },
    series: [...names.map((name, k) => ({ type: "line", name, color: typeColor(k), symbolSize: 8,
      data: what.points.filter((p) => p.placement === name).sort((a, b) => a.nodes - b.nodes)
        .map((p) => ({ value: [nodes.indexOf(p.nodes), p.seconds], point: p })),
      tooltip: { formatter: (p) => { const x = p.data.point; return tip(x.name, `${seconds(x.seconds)} (90 %: ${seconds(x.seconds_low)} to ${seconds(x.seconds_high)})`, `${size(x.network_bytes)} over the network`, x.cost !== null ? `cost ${x.cost.toPrecision(3)}` : ""); } } })),
    { type: "custom", renderItem: whisker, silent: true, encode: { x: 0, y: [1, 2] },
      data: what.points.map((p) => [nodes.indexOf(p.nodes), p.seconds_low, p.seconds_high, names.indexOf(p.placement)]) },
    { type: "line", name: "recorded", color: css("--soft"), showSymbol: false, lineStyle: { type: "dashed" }, data: recorded }],
  });
}

function drawBoth(what) {
  const place = $("whatif-timeline"), shownTypes = DATA.timeline.types;
  const parts = [{ title: "recorded", ...DATA.timeline }, { title: "predicted", ...what.timeline }];
  const end = Math.max(DATA.timeline.end_s, what.seconds), lanes = parts.map((p) => p.hosts.reduce((sum, x) => sum + x.lanes, 0) || 1);
  const tall = lanes.map((n) => Math.min(240, Math.max(50, (n + 1) * 14)));
  place.style.height = `${tall[0] + tall[1] + 90}px`;
  place.setAttribute("aria-label", `Recorded: ${seconds(DATA.timeline.end_s)}; predicted for ${what.shown}: ${seconds(what.seconds)}`);
  $("whatif-shown").textContent = `Above as recorded (${seconds(DATA.timeline.end_s)}), below as predicted for ${what.shown} (${seconds(what.seconds)}).`
    + (what.timeline.left_out ? ` ${plural(what.timeline.left_out, "short task")} not drawn.` : "");
  const color = (part, k) => typeColor(Math.max(0, shownTypes.indexOf(part.types[k])));
  const rect = (part) => (params, api) => {
    const from = api.coord([api.value(1), api.value(0)]), to = api.coord([api.value(2), api.value(0)]), deep = Math.max(1, api.size([0, 1])[1] * 0.8);
    return { type: "rect", shape: { x: from[0], y: from[1] - deep / 2, width: Math.max(1, to[0] - from[0]), height: deep }, style: { fill: color(part, api.value(3)) } };
  };
  chart(place, {
    tooltip: { ...tooltipStyle(), trigger: "item" },
    grid: parts.map((_, i) => ({ left: 90, right: 24, top: 10 + i * (tall[0] + 30), height: tall[i], outerBoundsMode: "none" })),
    xAxis: parts.map((_, i) => ({ type: "value", min: 0, max: end, interval: timeStep(end), gridIndex: i, ...axis(), axisLabel: { color: css("--soft"), show: i === 1, hideOverlap: true, showMaxLabel: false, formatter: shortTime } })),
    yAxis: parts.map((p, i) => ({ type: "value", inverse: true, min: -1, max: lanes[i], gridIndex: i, name: "", ...axis(), splitLine: { show: false }, interval: 1, axisTick: { show: false },
      axisLabel: { color: css("--soft"), formatter: (v) => { const x = p.hosts.find((x) => Math.floor(x.first + (x.lanes - 1) / 2) === v); return x ? shorten(x.name, 12) : ""; } } })),
    series: parts.map((p, i) => ({ type: "custom", name: p.title, renderItem: rect(p), xAxisIndex: i, yAxisIndex: i, encode: { x: [1, 2], y: 0 }, clip: true, progressive: 4000,
      data: p.bars.map((b) => b.slice(0, 4)),
      tooltip: { formatter: (x) => { const b = p.bars[x.dataIndex]; return tip(b[4], p.types[b[3]], `${p.title}: ${seconds(b[1])} to ${seconds(b[2])}`); } } })),
  });
}
