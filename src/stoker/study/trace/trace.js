// SPDX-License-Identifier: Apache-2.0
// Builds the page of a trace, or of several ranks, from its JSON block.
"use strict";

(() => {
  const {time, percent, count, stack, share, table, section, hint} = TraceParts;
  const words = {compute: "compute", communication: "communication", memory: "copies and fills", operator: "operator", runtime: "call of CUDA or HIP",
    annotation: "range", python: "Python", ...data.words};

  const column = (head, of, number = true) => ({head, of, number});
  const named = (row) => el("span", {title: row.name + (row.shapes ? " " + row.shapes : "")}, row.name || "–", ...(row.shapes ? [el("small", {}, " " + row.shapes)] : []));

  function idle(found) {
    const causes = found.by_cause.map((each) => ({kind: each.cause, words: each.words, ms: each.ms}));
    return [stack(causes, found.total_ms), table([
      column("", (row) => TraceParts.key(row.cause), false), column("what the host did, or what was waited for", (row) => row.name || words[row.cause], false),
      column("time", (row) => time(row.ms)), column("of idle", (row) => percent(row.ms / found.total_ms)), column("times", (row) => count(row.times))], found.by_name)];
  }

  function device(each) {
    const use = each.steps ?? each.first_to_last_work, whole = use.total_ms;
    const overlap = use.compute_ms + use.exposed_communication_ms + use.exposed_memory_ms;
    const parts = [{kind: "compute", words: "compute", ms: use.compute_ms}, {kind: "communication", words: "communication alone", ms: use.exposed_communication_ms},
      {kind: "memory", words: "copies alone", ms: use.exposed_memory_ms}, {kind: "queued", words: "other overlap", ms: Math.max(0, use.busy_ms - overlap)},
      ...each.idle.by_cause.map((cause) => ({kind: cause.cause, words: "idle: " + cause.words, ms: cause.ms}))];
    const streams = each.streams.length < 2 ? [] : [el("h3", {}, "Streams"), table([column("stream", (row) => String(row.stream)), column("busy", (row) => time(row.busy_ms)),
      column("alone", (row) => time(row.alone_ms)), column("pieces of work", (row) => count(row.pieces))], each.streams)];
    const title = `Device ${each.device}${each.name ? ": " + each.name : ""}`;
    return section(title, hint(each.steps ? `During the steps, ${time(whole)}. From its first to its last work it was busy ${percent(each.first_to_last_work.busy_share)}.`
      : `From its first to its last work, ${time(whole)}; the program marks no steps.`), stack(parts, whole),
      ...(each.idle.total_ms > 0 ? [el("h3", {}, `Idle time, ${time(each.idle.total_ms)}`), ...idle(each.idle)] : []), ...streams);
  }

  function steps(trace) {
    if (!trace.steps) return [];
    const longest = Math.max(...trace.steps.list.map((step) => step.ms));
    return [section("Steps", hint(`${count(trace.steps.count)} ${trace.steps.count === 1 ? "step" : "steps"}, mean ${time(trace.steps.mean_ms)}, longest ${time(longest)}`),
      el("div", {className: "steps"}, ...trace.steps.list.slice(0, 400).map((step) => el("i", {style: `height:${100 * step.ms / longest}%`, title: `${step.name}: ${time(step.ms)}`}))))];
  }

  function path(trace) {
    const found = trace.critical_path;
    if (!found) return [];
    const parts = [{kind: "operator", words: "host", ms: found.host_ms}, {kind: "compute", words: "device", ms: found.device_ms}, {kind: "latency", words: "launch and queue delays", ms: found.delay_ms},
      {kind: "unattributed", words: "between recorded calls", ms: Math.max(0, found.uncounted_ms)}];
    return [section("Critical path", hint(`${time(found.length_ms)}: the longest chain of work that waited for each other, through threads and streams. Only what is on it can shorten the whole.`),
      stack(parts, parts.reduce((sum, part) => sum + part.ms, 0)), table([column("on the path", (row) => row.name || row.part, false), column("part", (row) => row.part),
        column("time", (row) => time(row.ms)), column("", (row) => share(row.ms / found.length_ms))], found.by_name))];
  }

  function memory(trace) {
    return trace.memory.map((each) => {
      const place = el("div", {className: "memory"});
      const name = each.device === "host" ? "the host" : "device " + each.device;
      const made = section(`Memory of ${name}`, hint(`Peak ${bytes(each.peak_bytes)}${each.counted_from_begin_of_trace ? " more than at the trace's begin" : ""}${each.peak_reserved_bytes ? `, ${bytes(each.peak_reserved_bytes)} reserved by torch` : ""}; ${count(each.allocations)} allocations.`), place);
      requestAnimationFrame(() => new Dygraph(place, each.points.map(([at, allocated, reserved]) => [at, allocated, reserved]), {
        labels: ["ms", "allocated", "reserved"], colors: ["#2563eb", "#e8710a"], fillGraph: true, stepPlot: true, connectSeparatedPoints: true, legend: "follow",
        axes: {y: {axisLabelFormatter: bytes, valueFormatter: bytes, axisLabelWidth: 70}, x: {axisLabelFormatter: (ms) => time(ms), valueFormatter: (ms) => time(ms)}}}));
      return made;
    });
  }

  function bytes(value) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    for (; Math.abs(value) >= 1024 && unit < 4; ++unit) value /= 1024;
    return Number(value.toPrecision(3)) + " " + units[unit];
  }

  function work(trace) {
    const whole = trace.device_work.reduce((sum, row) => sum + row.ms, 0);
    return !whole ? [] : [section("Kernels and copies", table([column("name", named, false), column("launched by", (row) => row.launched_by ?? "–", false), column("times", (row) => count(row.times)),
      column("time", (row) => time(row.ms)), column("mean", (row) => time(row.ms / row.times)), column("share", (row) => percent(row.ms / whole)), column("", (row) => share(row.ms / whole))], trace.device_work))];
  }

  function operators(trace) {
    const by_host = !trace.devices.length;
    const rows = [...trace.operators].sort((a, b) => by_host ? b.host_self_ms - a.host_self_ms : 0);
    return !rows.length ? [] : [section("Operators", hint("Time of their own: without the operators that they call. Device time is the work that they launched."),
      table([column("operator", named, false), column("times", (row) => count(row.times)), ...(by_host ? [] : [column("device, own", (row) => time(row.device_self_ms)), column("device, all", (row) => time(row.device_ms))]),
        column("host, own", (row) => time(row.host_self_ms)), column("host, all", (row) => time(row.host_ms))], rows))];
  }

  function ranges(trace) {
    return !trace.ranges.length ? [] : [section("Ranges that the program named", table([column("range", named, false), column("times", (row) => count(row.times)),
      column("host", (row) => time(row.host_ms)), column("device work launched", (row) => time(row.device_ms))], trace.ranges))];
  }

  function one(trace, line) {
    const host = trace.host_idle ? [section("Main thread", hint(`No device worked. The main thread spent ${time(trace.host_idle.total_ms)} of ${time(trace.host_idle.window_ms)} outside operators.`),
      ...(trace.host_idle.total_ms > 0 ? idle(trace.host_idle) : []))] : [];
    const drawn = line ? [section(`Time line of ${line.title}`, TimeLine.make(line, words))] : [];
    return el("div", {className: "trace"}, ...trace.damage.map((text) => el("p", {className: "warning"}, "Damaged: " + text)), ...trace.devices.map(device), ...host, ...drawn, ...steps(trace),
      ...work(trace), ...operators(trace), ...ranges(trace), ...path(trace), ...memory(trace));
  }

  const base_name = (file) => file.split(/[/:]/).pop();

  function ranks() {
    if (!data.ranks) return;
    const found = data.ranks, row_name = (row) => row.rank === null ? base_name(row.file) : "rank " + row.rank;
    const late = found.straggler === null ? "No rank keeps the others waiting." : `The others wait in collectives for ${row_name(found.rows[found.straggler])}.`;
    $("ranks").append(section(found.rows.some((row) => row.rank !== null) ? "Ranks" : "Traces", hint(late + (found.missing_ranks.length ? ` Traces of ranks ${found.missing_ranks.slice(0, 20).join(", ")} are missing.` : "")),
      table([column("rank", row_name, false), column("mean step", (row) => time(row.mean_step_ms)), column("busy", (row) => row.window_ms ? percent(row.busy_ms / row.window_ms) : "–"), column("compute", (row) => time(row.compute_ms)),
        column("communication", (row) => time(row.communication_ms)), column("exposed of it", (row) => time(row.exposed_communication_ms)), column("waited for later ranks", (row) => time(row.waited_in_collectives_ms))], found.rows)));
  }

  function tiles(trace) {
    const tile = (value, text) => el("div", {className: "tile"}, el("b", {}, value), el("span", {}, text));
    const made = trace.steps ? [tile(time(trace.steps.mean_ms), "mean step")] : [tile(time(trace.whole_ms), "whole trace")];
    for (const each of trace.devices.slice(0, 2)) {
      const use = each.steps ?? each.first_to_last_work;
      made.push(tile(percent(use.busy_share), trace.devices.length > 1 ? `device ${each.device} busy` : "device busy"));
      if (each.idle.total_ms > 0.001 * use.total_ms) made.push(tile(percent(each.idle.by_cause[0].ms / use.total_ms), "idle: " + each.idle.by_cause[0].words));
      if (each.idle.total_ms > 0.001 * use.total_ms) made.push(tile(percent(each.idle.unattributed_share), "of idle time has no name"));
    }
    if (trace.host_idle) made.push(tile(percent(1 - trace.host_idle.total_ms / trace.host_idle.window_ms), "main thread in operators"));
    $("tiles").replaceChildren(...made);
  }

  function show(number) {
    const trace = data.traces[number];
    tiles(trace);
    $("subtitle").textContent = `${trace.file}: ${count(trace.events)} events, ${bytes(trace.json_bytes)} of JSON`;
    $("traces").replaceChildren(one(trace, data.lines[number]));
  }

  ranks();
  if (data.traces.length > 1) {
    $("files").hidden = false;
    $("files").append(...data.traces.map((trace, number) => {
      const made = el("button", {type: "button"}, trace.rank === undefined ? base_name(trace.file) : "rank " + trace.rank);
      made.addEventListener("click", () => show(number));
      return made;
    }));
  }
  show(0);
  $("made").textContent = "Made by stoker trace. The page needs no network.";
})();
