// SPDX-License-Identifier: Apache-2.0
// The figures of the machine beside a run, on one axis of time.
"use strict";

const Monitor = (() => {
  const colours = ["--run0", "--run1", "--run2", "--run3", "--run5", "--run6", "--run4"];

  // Numbers of a unit as text; large ones in steps of 1,000, bytes of 1,024.
  function format(unit) {
    if (unit === "share") return Format.percent;
    if (unit === "bytes") return Format.bytes;
    if (unit === "bytes/s") return (value) => Format.bytes(value) + "/s";
    if (unit === "Hz") return (value) => Math.round(value / 1e6).toLocaleString("en-US") + " MHz";
    return (value) => Format.plain(value) + (unit === "cores" ? "" : " " + unit);
  }

  function card(monitor, chart) {
    const marks = monitor.marks.map((mark) => ({x: mark.x, t: mark.t, run: 0, kind: "line", color: mark.kind === "checkpoint" ? "--good" : "--val"}));
    const lines = chart.lines.map((line, i) => ({...line, color: colours[i], run: 0, x: monitor.x, t: monitor.t, width: 1.4}));
    return {title: chart.title + (chart.unit === "cores" ? " (cores)" : ""), axis: "t", low0: true, format: format(chart.unit), lines, marks};
  }

  // Shows the section with its charts; they are drawn like all others.
  function fill(section, monitor) {
    section.hidden = false;  // hidden charts would have no size
    const kinds = new Set(monitor.marks.map((mark) => mark.kind)), says = section.querySelector(".legend");
    const add = (color, text) => says.append(el("span", {}, el("i", {className: "dashes", style: `color:var(${color})`}), text));
    says.append(el("span", {}, "Time since the run began."));
    if (kinds.has("evaluation")) add("--val", "evaluation");
    if (kinds.has("checkpoint")) add("--good", "checkpoint");
    for (const chart of monitor.charts) Charts.add(section.querySelector(".grid"), card(monitor, chart));
    Charts.redraw();
  }

  return {fill};
})();
