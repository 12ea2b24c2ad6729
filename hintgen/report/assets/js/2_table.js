// A table that sorts, filters and pages. Columns: {name, get(i), show(i), num, long}.
function makeTable(place, caption, columns, length, options = {}) {
  const page = options.page || 25;
  let order = Array.from({ length }, (_, i) => i);
  let sorted = { column: -1, down: false }, first = 0, wanted = "";
  const body = h("tbody"), status = h("span", { role: "status", "aria-live": "polite" });
  const filter = h("input", { type: "search", "aria-label": "Filter " + caption, placeholder: "filter" });
  const back = h("button", { type: "button", onclick: () => turn(-page) }, "Previous");
  const next = h("button", { type: "button", onclick: () => turn(page) }, "Next");
  const heads = columns.map((c, k) => h("th", { scope: "col", class: c.num ? "num" : null },
    h("button", { type: "button", onclick: () => sort(k) }, c.name)));
  const texts = () => {
    if (!texts.cache) {
      texts.cache = order.map((_, i) => columns.map((c) => String(c.get(i) ?? "")).join("\n").toLowerCase());
    }
    return texts.cache;
  };

  function turn(step) { first = Math.max(0, first + step); draw(); }
  function sort(k) {
    sorted = { column: k, down: sorted.column === k ? !sorted.down : Boolean(columns[k].num) };
    heads.forEach((head, i) => {
      if (i === k) head.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    first = 0;
    draw();
  }
  function visible() {
    let rows = Array.from({ length }, (_, i) => i);
    if (wanted) { const all = texts(); rows = rows.filter((i) => all[i].includes(wanted)); }
    if (sorted.column >= 0) {
      const get = columns[sorted.column].get, sign = sorted.down ? -1 : 1;
      const compare = (a, b) => (a === b ? 0 : a === null || a === undefined ? 1 : b === null || b === undefined ? -1
        : typeof a === "string" ? sign * a.localeCompare(b, "en", { numeric: true }) : sign * (a < b ? -1 : 1));
      rows.sort((a, b) => compare(get(a), get(b)) || a - b);
    }
    return rows;
  }
  function draw() {
    order = visible();
    if (first >= order.length) first = Math.max(0, Math.floor((order.length - 1) / page) * page);
    const rows = order.slice(first, first + page);
    fill(body, rows.map((i) => h("tr", null, columns.map((c) => h("td",
      { class: c.num ? "num" : c.long ? "long" : null, "data-label": c.name }, c.show ? c.show(i) : c.get(i) ?? "")))));
    const paged = order.length > page;
    back.hidden = next.hidden = !paged;
    back.disabled = first === 0;
    next.disabled = first + page >= order.length;
    status.textContent = order.length === 0 ? "no match"
      : paged ? `${count(first + 1)} to ${count(Math.min(first + page, order.length))} of ${count(order.length)}`
        : plural(order.length, "row");
  }

  filter.addEventListener("input", () => { wanted = filter.value.trim().toLowerCase(); first = 0; draw(); });
  const bar = h("div", { class: "table-bar" }, length > 5 ? filter : null, back, next, status);
  const table = h("table", null, h("caption", { class: "visually-hidden" }, caption),
    h("thead", null, h("tr", null, heads)), body);
  fill(place, bar, h("div", { class: "scroll" }, table));
  draw();
}
