"use strict";
(() => {
  // Tables: a heading becomes a button that sorts; unknown values stay at the end.
  const value = (row, column, numeric) => {
    const cell = row.cells[column];
    const key = cell.dataset.key ?? cell.textContent;
    return numeric ? (key === "" ? NaN : Number(key)) : key;
  };
  const compare = (a, b, sign) => {
    if (typeof a === "number") {
      if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
      return sign * (a - b);
    }
    if (a === "" || b === "") return (a === "") - (b === "");
    return sign * a.localeCompare(b, "en", { numeric: true });
  };
  const sort = (table, heading) => {
    const falling = heading.getAttribute("aria-sort") === "ascending";
    const sign = falling ? -1 : 1;
    const column = heading.cellIndex;
    const numeric = "numeric" in heading.dataset;
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [value(row, column, numeric), row]);
    rows.sort((a, b) => compare(a[0], b[0], sign));
    body.append(...rows.map((pair) => pair[1]));
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    for (const heading of table.tHead.rows[0].cells) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = heading.textContent;
      button.addEventListener("click", () => sort(table, heading));
      heading.replaceChildren(button);
    }
  }

  // Timeline: one stop for the Tab key, arrows within, and the numbers in one line below.
  for (const chart of document.querySelectorAll("[data-chart]")) {
    const readout = chart.querySelector("[data-readout]");
    const lanes = [...chart.querySelectorAll("svg.bar")]
      .map((lane) => [...lane.querySelectorAll(".seg")])
      .filter((lane) => lane.length);
    if (!lanes.length) continue;
    let current = lanes[0][0];
    current.setAttribute("tabindex", "0");
    const show = (segment) => {
      chart.querySelector(".seg.on")?.classList.remove("on");
      segment.classList.add("on");
      readout.textContent = segment.getAttribute("aria-label");
    };
    const go = (segment) => {
      if (!segment) return;
      current.setAttribute("tabindex", "-1");
      current = segment;
      current.setAttribute("tabindex", "0");
      current.focus();
    };
    const moves = {
      ArrowRight: (y, x) => lanes[y][x + 1],
      ArrowLeft: (y, x) => lanes[y][x - 1],
      ArrowDown: (y, x) => lanes[y + 1]?.[Math.min(x, lanes[y + 1].length - 1)],
      ArrowUp: (y, x) => lanes[y - 1]?.[Math.min(x, lanes[y - 1].length - 1)],
      Home: (y) => lanes[y][0],
      End: (y) => lanes[y].at(-1),
    };
    chart.addEventListener("keydown", (event) => {
      const move = moves[event.key];
      const y = lanes.findIndex((lane) => lane.includes(event.target));
      if (!move || y < 0) return;
      event.preventDefault();
      go(move(y, lanes[y].indexOf(event.target)));
    });
    const told = (event) => {
      const segment = event.target.closest(".seg");
      if (segment) show(segment);
    };
    chart.addEventListener("focusin", told);
    chart.addEventListener("mouseover", told);
    chart.addEventListener("click", (event) => {
      const segment = event.target.closest(".seg");
      if (segment) go(segment);
    });
  }

  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details")) part.open = true;
  });
})();
