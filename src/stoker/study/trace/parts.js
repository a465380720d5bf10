// SPDX-License-Identifier: Apache-2.0
// Pieces of the pages of traces: figures, bars, tables that show their first rows. Text is inserted only as text.
"use strict";

const TraceParts = (() => {
  const kFirstRows = 12;

  function time(ms) {
    if (ms === null || ms === undefined) return "–";
    const size = Math.abs(ms);
    const [value, unit] = size === 0 ? [0, "ms"] : size < 1e-3 ? [ms * 1e6, "ns"] : size < 1 ? [ms * 1e3, "µs"] : size < 1e3 ? [ms, "ms"] : [ms / 1e3, "s"];
    return Number(value.toPrecision(3)).toLocaleString("en-US") + " " + unit;
  }
  const percent = (share) => (100 * share).toFixed(share > 0 && share < 0.0995 ? 1 : 0) + " %";
  const count = (value) => Number(value.toFixed(value < 10 && value % 1 ? 1 : 0)).toLocaleString("en-US");
  const key = (kind) => el("i", {className: "key", style: `background:var(--c-${kind})`});

  // parts: [{kind, words, ms}]
  function stack(parts, whole) {
    const shown = parts.filter((part) => part.ms > 0);
    return el("div", {},
      el("div", {className: "stack"}, ...shown.map((part) => el("i", {
        title: `${part.words}: ${time(part.ms)}, ${percent(part.ms / whole)}`, style: `width:${100 * part.ms / whole}%;background:var(--c-${part.kind})`}))),
      el("div", {className: "legend"}, ...shown.map((part) => el("span", {}, key(part.kind), `${part.words} ${percent(part.ms / whole)}`))));
  }

  const share = (value) => el("span", {className: "track", title: percent(value)}, el("i", {style: `width:${100 * Math.min(1, value)}%`}));

  // columns: [{head, of, number}]; `of` gives a text or an element for a row.
  function table(columns, rows) {
    if (!rows.length) return el("p", {className: "note"}, "none");
    const cell = (column, row) => {
      const content = column.of(row);
      return el("td", {className: column.number ? "n" : "name", title: typeof content === "string" && !column.number ? content : ""}, content);
    };
    const made = rows.map((row) => el("tr", {}, ...columns.map((column) => cell(column, row))));
    const body = el("tbody", {}, ...made);
    if (rows.length > kFirstRows + 3) {
      const rest = made.slice(kFirstRows);
      const button = el("button", {type: "button"}, `show ${rest.length} more`);
      const more = el("tr", {className: "more"}, el("td", {colSpan: columns.length}, button));
      rest.forEach((row) => { row.hidden = true; });
      body.append(more);
      button.addEventListener("click", () => {
        rest.forEach((row) => { row.hidden = false; });
        more.remove();
      });
    }
    return el("div", {className: "scroll"}, el("table", {className: "rows"},
      el("thead", {}, el("tr", {}, ...columns.map((column) => el("th", {className: column.number ? "n" : ""}, column.head)))), body));
  }

  const section = (title, ...content) => el("section", {}, el("h2", {}, title), ...content);
  const hint = (text) => el("p", {className: "note"}, text);

  return {time, percent, count, key, stack, share, table, section, hint};
})();
