// SPDX-License-Identifier: Apache-2.0
// The parts of report.html besides curves: tables, confusion matrices, images, samples. Text from runs is inserted only
// as text, never as HTML.
"use strict";

const Exhibits = (() => {
  const cellText = (value) => value === null ? "" : typeof value === "number"
    ? (Number.isInteger(value) ? Format.count(value) : Format.plain(value)) : typeof value === "object" ? JSON.stringify(value) : String(value);

  // A table that sorts by the column whose header is clicked. rows: arrays; numbers between 0 and 1 get a bar.
  function table(columns, rows, styles) {
    const numeric = columns.map((_, c) => rows.length > 0 && rows.every((row) => typeof row[c] === "number" || row[c] === null));
    const shares = columns.map((_, c) => numeric[c] && rows.some((row) => row[c] !== null && !Number.isInteger(row[c]))
      && rows.every((row) => row[c] === null || (row[c] >= 0 && row[c] <= 1)));
    const body = el("tbody", {});
    let order = null;
    function fill() {
      const sorted = [...rows];
      if (order) {
        sorted.sort((a, b) => {
          const [left, right] = [a[order.column], b[order.column]];
          const less = numeric[order.column] ? left - right : String(left).localeCompare(String(right), "en", {numeric: true});
          return order.down ? -less : less;
        });
      }
      body.replaceChildren(...sorted.map((row) => el("tr", {}, ...columns.map((_, c) => {
        const cell = el("td", {className: (numeric[c] ? "number" : "text") + (shares[c] ? " share" : "")}, styles?.[c] ? styles[c](row[c], row) : cellText(row[c] ?? null));
        if (shares[c] && row[c] !== null) cell.style.setProperty("--p", (100 * row[c]).toFixed(1) + "%");
        return cell;
      }))));
    }
    fill();
    const head = el("tr", {}, ...columns.map((name, c) => {
      const button = el("button", {type: "button", title: "sort"}, String(name));
      button.addEventListener("click", () => { order = {column: c, down: order?.column === c ? !order.down : numeric[c]}; fill(); });
      return el("th", {className: numeric[c] ? "number" : ""}, button);
    }));
    return el("div", {className: "scroll"}, el("table", {}, el("thead", {}, head), body));
  }

  function block(thing, ...content) {
    const result = el("div", {className: "block"}, el("h3", {}, String(thing.title || thing.file)), ...content);
    if (thing.left_out) result.append(el("p", {className: "note"}, thing.left_out + "."));
    if (thing.note) result.append(el("p", {className: "note"}, String(thing.note)));
    return result;
  }

  function gallery(thing) {
    const figures = thing.items.map((item) => {
      const image = el("img", {src: item.image, alt: String(item.caption || ""), loading: "lazy"});
      image.addEventListener("load", () => image.classList.toggle("small", image.naturalWidth < 100));
      return el("figure", {className: typeof item.good === "boolean" ? String(item.good) : ""}, image, el("figcaption", {}, String(item.caption || "")));
    });
    return block(thing, el("div", {className: "gallery"}, ...figures));
  }

  // One block for all samples: the newest is open, older ones are folded.
  function texts(things) {
    const sorted = [...things].sort((a, b) => (b.step ?? Infinity) - (a.step ?? Infinity));
    const parts = sorted.map((thing, i) => {
      if (i === 0) return block(thing, el("pre", {}, thing.text));
      return el("details", {}, el("summary", {}, String(thing.title || thing.file)), el("pre", {}, thing.text));
    });
    return el("div", {}, ...parts);
  }

  // Cells as a grid of numbers for up to 40 classes, else as a heat map.
  function matrix(thing) {
    const labels = thing.labels.map(String), size = labels.length;
    const sums = new Array(size).fill(0);
    for (const [row, , value] of thing.cells) sums[row] += value;
    const wrong = thing.cells.filter(([row, column]) => row !== column).sort((a, b) => b[2] - a[2]);
    const right = thing.cells.filter(([row, column]) => row === column).reduce((sum, cell) => sum + cell[2], 0);
    const total = sums.reduce((a, b) => a + b, 0);
    const most = table(["true", "predicted", "count", "share of class"], wrong.slice(0, size > 40 ? 20 : 10)
      .map(([row, column, value]) => [labels[row], labels[column], value, value / sums[row]]), {3: (value) => Format.percent(value)});
    const aside = el("div", {}, el("p", {className: "note"}, `${Format.count(right)} of ${Format.count(total)} correct. ` +
      (wrong.length ? "Most frequent confusions:" : "No confusions.")));
    if (wrong.length) aside.append(most);
    const shown = size <= 40 ? words(thing, labels, sums) : heat(thing, labels, sums);
    return block(thing, el("div", {className: "beside"}, shown, aside));
  }

  function words(thing, labels, sums) {
    const values = new Map(thing.cells.map(([row, column, value]) => [row * labels.length + column, value]));
    const head = el("tr", {}, el("th", {}, el("span", {className: "note"}, "predicted")), ...labels.map((label) => el("th", {title: label}, el("span", {}, label))));
    const rows = labels.map((label, row) => el("tr", {}, el("th", {title: label}, label), ...labels.map((predicted, column) => {
      const value = values.get(row * labels.length + column) || 0, share = sums[row] ? value / sums[row] : 0;
      const tint = `color-mix(in srgb, var(${row === column ? "--good" : "--bad"}) ${(100 * Math.sqrt(share) * 0.75).toFixed(0)}%, transparent)`;
      return el("td", {className: value ? "" : "zero", title: `true ${label}, predicted ${predicted}: ${value}`, style: value ? `background:${tint}` : ""}, Format.count(value));
    })));
    return el("div", {className: "scroll"}, el("table", {className: "confusion"}, el("thead", {}, head), el("tbody", {}, ...rows)));
  }

  function heat(thing, labels, sums) {
    const size = labels.length, values = new Map();
    const canvas = el("canvas", {className: "heat", width: size, height: size});
    const says = el("p", {className: "note"}, "Rows are true classes, columns are predicted classes, starting at the top left. A stronger colour is a larger share of the class. Point at a cell for its numbers.");
    const context = canvas.getContext("2d");
    for (const [row, column, value] of thing.cells) {
      const share = sums[row] ? Math.sqrt(value / sums[row]) : 0;
      context.fillStyle = row === column ? `rgba(33,160,88,${0.2 + 0.8 * share})` : `rgba(232,74,66,${0.4 + 0.6 * share})`;
      context.fillRect(column, row, 1, 1);
      values.set(row * size + column, value);
    }
    canvas.addEventListener("mousemove", (event) => {
      const at = (offset, extent) => Math.min(size - 1, Math.max(0, Math.floor(offset / extent * size)));
      const row = at(event.offsetY, canvas.clientHeight), column = at(event.offsetX, canvas.clientWidth);
      const value = values.get(row * size + column) || 0;
      says.textContent = `true ${labels[row]}, predicted ${labels[column]}: ${Format.count(value)}` +
        (sums[row] ? ` (${Format.percent(value / sums[row])} of the class)` : "");
    });
    return el("div", {}, canvas, says);
  }

  // The plan with marks on values that are not defaults; a check box hides the others.
  function plan(rows) {
    const only = el("input", {type: "checkbox"});
    const body = el("tbody", {}, ...rows.map((row) => {
      const changed = row.origin !== "default" && row.origin !== "";
      return el("tr", {className: changed ? "changed" : "usual"}, el("td", {}, row.key), el("td", {className: "value"}, row.value === "" ? "–" : row.value),
        el("td", {className: "origin"}, row.origin), el("td", {}, row.reason));
    }));
    only.addEventListener("change", () => body.querySelectorAll(".usual").forEach((row) => { row.hidden = only.checked; }));
    const head = el("tr", {}, ...["key", "value", "origin", "reason"].map((name) => el("th", {}, name)));
    const changed = rows.filter((row) => row.origin !== "default" && row.origin !== "").length;
    return [el("p", {className: "note"}, el("label", {}, only, ` show only the ${changed} of ${rows.length} values that are not defaults`)),
      el("div", {className: "scroll"}, el("table", {}, el("thead", {}, head), body))];
  }

  return {table, block, gallery, texts, matrix, plan};
})();
