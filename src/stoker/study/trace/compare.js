// SPDX-License-Identifier: Apache-2.0
// Builds the page of two traces side by side from its JSON block.
"use strict";

(() => {
  const {time, percent, count, stack, table, section, hint} = TraceParts;
  const sides = [["before", data.before], ["after", data.after]];
  const use_of = (trace) => trace.devices.length ? trace.devices[0].steps ?? trace.devices[0].first_to_last_work : null;

  function sums(trace, steps) {
    const use = use_of(trace);
    if (!use) return [];
    const parts = [{kind: "compute", words: "compute", ms: use.compute_ms}, {kind: "communication", words: "communication alone", ms: use.exposed_communication_ms},
      {kind: "memory", words: "copies alone", ms: use.exposed_memory_ms}, ...trace.devices[0].idle.by_cause.map((cause) => ({kind: cause.cause, words: "idle: " + cause.words, ms: cause.ms}))];
    return parts.map((part) => ({...part, ms: part.ms / steps}));
  }

  const of_idle = {faster: "less", slower: "more"};

  function changes(title, rows, words = {}) {
    const shown = rows.filter((row) => row.before_ms !== row.after_ms);
    const signed = (row) => (row.after_ms < row.before_ms ? "−" : "+") + time(Math.abs(row.after_ms - row.before_ms));
    const name = (row) => el("span", {title: row.name + " " + (row.shapes ?? "")}, row.name, ...(row.shapes ? [el("small", {}, " " + row.shapes)] : []));
    return section(title, table([{head: "name", of: name}, {head: "before", of: (row) => row.change === "new" ? "–" : time(row.before_ms), number: true},
      {head: "after", of: (row) => row.change === "gone" ? "–" : time(row.after_ms), number: true}, {head: "difference", of: signed, number: true},
      {head: "times", of: (row) => `${count(row.times_before)} → ${count(row.times_after)}`, number: true},
      {head: "", of: (row) => el("span", {className: row.change}, words[row.change] ?? row.change), number: true}], shown));
  }

  const per_step = data.times_are === "per step";
  const steps = (trace) => per_step ? trace.steps.count : 1;
  const longest = Math.max(...sides.map(([, trace]) => sums(trace, steps(trace)).reduce((sum, part) => sum + part.ms, 0)));
  $("traces").append(section("Where the time went", hint(per_step ? "Per step." : "Of the whole traces: one of them marks no steps."),
    ...(longest > 0 ? sides.flatMap(([word, trace]) => [el("h3", {}, `${word}: ${trace.file.split("/").pop()}`), stack(sums(trace, steps(trace)), longest)]) : [])));
  const tile = (value, text) => el("div", {className: "tile"}, el("b", {}, value), el("span", {}, text));
  for (const [word, trace] of sides) {
    $("tiles").append(tile(trace.steps ? time(trace.steps.mean_ms) : time(trace.whole_ms), `${trace.steps ? "mean step" : "whole trace"} ${word}`));
    if (use_of(trace)) $("tiles").append(tile(percent(use_of(trace).busy_share), "device busy " + word));
  }
  if (per_step) $("tiles").append(tile((data.before.steps.mean_ms / data.after.steps.mean_ms).toFixed(2) + "×", "steps as fast"));
  $("traces").append(changes("Idle time", data.idle, of_idle), changes("Kernels and copies", data.kernels), changes(`Operators, ${data.operators_by}`, data.operators));
  $("subtitle").textContent = sides.map(([, trace]) => trace.file).join(" → ");
  $("made").textContent = "Made by stoker trace. The page needs no network.";
})();
