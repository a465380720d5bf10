// SPDX-License-Identifier: Apache-2.0
// The figures of the machine beside a run, on one axis of time.
"use strict";

const Monitor = (() => {
  const colours = ["--run0", "--run1", "--run2", "--run3", "--run5", "--run6", "--run4"];

  // How to show a unit: numbers are divided by size, so that an axis has round ones.
  function shown(chart) {
    const highest = Math.max(0, ...chart.lines.flatMap((line) => (line.hi || line.mean).filter(Number.isFinite)));
    const inUnits = (size, name) => ({size, format: (value) => Number(value.toPrecision(3)) + " " + name});
    if (chart.unit === "share") return {size: 1, format: Format.percent};
    if (chart.unit === "cores") return {size: 1, format: (value) => String(Number(value.toPrecision(3)))};
    if (chart.unit === "Hz") return inUnits(1e9, "GHz");
    if (!chart.unit.startsWith("bytes")) return inUnits(1, chart.unit);
    const [power, name] = [[30, "GiB"], [20, "MiB"], [10, "KiB"]].find(([bits]) => highest >= 2 ** bits) || [0, "B"];
    return inUnits(2 ** power, name + chart.unit.slice("bytes".length));
  }

  function card(monitor, chart) {
    const marks = monitor.marks.map((mark) => ({x: mark.x, t: mark.t, run: 0, kind: "line", color: mark.kind === "checkpoint" ? "--good" : "--val"}));
    const {size, format} = shown(chart);
    const scaled = (values) => values?.map((value) => typeof value === "number" ? value / size : value);
    const lines = chart.lines.map((line, i) => ({label: line.label, mean: scaled(line.mean), lo: scaled(line.lo), hi: scaled(line.hi),
      color: colours[i], run: 0, x: monitor.x, t: monitor.t, width: 1.4}));
    return {title: chart.title, axis: "t", low0: true, format, lines, marks};
  }

  // Shows the section with its charts; they are drawn like all others.
  function fill(section, monitor) {
    section.hidden = false;  // hidden charts would have no size
    const kinds = new Set(monitor.marks.map((mark) => mark.kind)), says = section.querySelector(".legend");
    const add = (color, text) => says.append(el("span", {}, el("i", {className: "dashes", style: `color:var(${color})`}), text));
    if (kinds.has("evaluation")) add("--val", "evaluation");
    if (kinds.has("checkpoint")) add("--good", "checkpoint");
    for (const chart of monitor.charts) Charts.add(section.querySelector(".grid"), card(monitor, chart));
    Charts.redraw();
    says.prepend(el("span", {}, `The axis is the time since the run began, in ${Charts.timeUnit().name}.`));
  }

  return {fill};
})();
