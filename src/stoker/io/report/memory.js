// SPDX-License-Identifier: Apache-2.0
// The memory record of a run: what the peak held, and the step from allocation to allocation.
"use strict";

const Memory = (() => {
  const svg = (name, properties, ...children) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(properties).forEach(([key, value]) => node.setAttribute(key, value));
    node.append(...children);
    return node;
  };

  // Phases and named points are lines; the area is what tensors held.
  function chart(thing) {
    const width = 900, height = 180, line = thing.line, peak = Math.max(1, thing.peak);
    const x = (share) => (share * width).toFixed(1), y = (bytes) => (height - height * 0.9 * bytes / peak).toFixed(1);
    const points = line.map((bytes, i) => `${x(i / Math.max(1, line.length - 1))},${y(bytes)}`).join(" ");
    const marks = thing.marks.filter((mark) => mark.name !== "start" && mark.name !== "end").slice(0, 24);
    return svg("svg", {viewBox: `0 0 ${width} ${height + 22}`, role: "img", style: "width:100%;max-width:900px",
      "aria-label": `memory over the step, highest ${Format.bytes(thing.peak)}`},
      svg("polygon", {points: `0,${height} ${points} ${width},${height}`, style: "fill:var(--train);opacity:.35"}),
      svg("polyline", {points, style: "fill:none;stroke:var(--train);stroke-width:1.5"}),
      ...marks.flatMap((mark, i) => [
        svg("line", {x1: x(mark.at), x2: x(mark.at), y1: 0, y2: height, style: "stroke:currentColor;opacity:.3"}),
        svg("text", {x: x(mark.at), y: height + (i % 2 ? 20 : 10), "text-anchor": mark.at > 0.9 ? "end" : "start",
          style: "fill:currentColor;font-size:10px"}, mark.name)]));
  }

  const share = (value) => el("div", {style: `background:var(--train);height:10px;min-width:1px;width:calc(min(200px, 22vw) * ${value.toFixed(3)})`});

  function categories(thing) {
    const rows = thing.categories.filter((each) => each.bytes).map((each) => el("tr", {}, el("td", {}, each.name),
      el("td", {className: "number"}, Format.bytes(each.bytes)), el("td", {className: "number"}, Format.percent(each.bytes / thing.peak)),
      el("td", {}, share(each.bytes / thing.peak))));
    return el("table", {}, el("tbody", {}, ...rows));
  }

  function block(thing) {
    const by = thing.peak_operator ? ` (${thing.peak_operator})` : "";
    const largest = Exhibits.table(["bytes", "category", "shape", "made by", "in"],
      thing.blocks.map((each) => [Format.bytes(each.bytes), each.category, each.shape, each.operator || "–", each.phase]));
    return el("div", {}, el("p", {}, `Step ${thing.step} held at most ${Format.bytes(thing.peak)}, in ${thing.peak_phase}${by}, and ${Format.bytes(thing.after)} when it ended. ` +
      (thing.host_peak > 0 ? `The process held at most ${Format.bytes(thing.host_peak)} of main memory during the run. ` : "") +
      `${Format.count(thing.allocations)} allocations from left to right:`), chart(thing), categories(thing),
      el("details", {}, el("summary", {}, "largest tensors of the step at its peak"), largest));
  }

  return {block};
})();
