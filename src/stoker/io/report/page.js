// SPDX-License-Identifier: Apache-2.0
// Builds report.html from its JSON block: header, time line, curves, exhibits, plan, commands.
"use strict";

(() => {
  const runs = data.runs, single = runs.length === 1;
  const names = runs.map((run) => runs.filter((other) => other.name === run.name).length > 1 ? run.path : run.name);

  function show(id, ...content) {
    $(id).append(...content);
    $(id).hidden = false;
  }

  // "nan" stands for NaN, which JSON lacks.
  const values = (list) => list?.map((value) => value === "nan" ? NaN : value);

  addEventListener("theme", () => Charts.redraw());

  function header() {
    $("kind").textContent = single ? "run report" : "run comparison";
    $("made").textContent = `Made ${data.made} by stoker report from ${runs.map((run) => run.path).join(", ")}. The page needs no network.`;
    if (!single) return compared();
    const run = runs[0];
    $("verdict").textContent = run.verdict.replace(/(\d) (?=%|s\b|min\b|h\b)/g, "$1\u00a0");  // keeps units with numbers
    $("state").textContent = run.state;
    $("state").classList.add(run.state);
    $("subtitle").textContent = run.title;
    $("tiles").append(...run.tiles.map(([label, value, note]) => el("div", {className: "tile"}, el("span", {}, label), el("b", {}, value), el("span", {}, note))));
  }

  const swatch = (i) => el("span", {className: "swatch", style: `background:var(--run${i % 8})`});

  function compared() {
    $("verdict").hidden = $("subtitle").hidden = true;
    const labels = [...new Set(runs.flatMap((run) => run.tiles.map(([label]) => label)))];
    const head = el("tr", {}, ...["run", "state", ...labels].map((label) => el("th", {}, label)));
    const rows = runs.map((run, i) => {
      const box = el("input", {type: "checkbox", checked: true, title: "show or hide the curves of this run"});
      box.addEventListener("change", () => { Charts.settings.hidden[box.checked ? "delete" : "add"](i); Charts.redraw(); });
      const state = el("span", {className: "badge " + run.state, title: run.end}, run.state);
      const tiles = new Map(run.tiles);
      return el("tr", {}, el("td", {}, el("label", {}, box, swatch(i), names[i])), el("td", {}, state),
        ...labels.map((label) => el("td", {className: "number"}, tiles.get(label) ?? "–")));
    });
    $("runs").append(el("div", {className: "scroll"}, el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows))));
  }

  // Events of one run by kind, over all steps from its begin to its planned end.
  function timeline() {
    const run = runs[0], xs = run.steps.x, reached = xs[xs.length - 1] || 0;
    const end = Math.max(run.last_step, reached);
    if (!end) return;
    const lane = (name, marks, sign, kind) => marks.length && $("timeline").append(el("div", {className: "lane"}, el("span", {}, name),
      el("div", {className: "track"}, ...marks.map(([step, text]) =>
        el("b", {className: kind, title: `step ${Format.count(step)}: ${text}`, style: `left:${100 * step / end}%`}, sign)))));
    $("timeline").append(el("div", {className: "lane"}, el("span", {}, "done"),
      el("div", {className: "track done"}, el("i", {style: `width:${100 * reached / end}%`}))));
    lane("best so far", run.better.first, "▲", "good");
    lane("checkpoints", run.checkpoints, "◆", "");
    lane("resumed", run.resumed_at.map((step) => [step, "resumed"]), "↻", "warn");
    lane("skipped", run.skipped.first, "✕", "bad");
    lane("not finite", run.not_finite.first, "✕", "bad");
    const skipped = new Set(run.skipped.first.map(([step]) => step));
    lane("survived", run.faults.first.filter(([step]) => !skipped.has(step)), "!", "warn");
  }

  function marks(run, i) {
    const xs = run.steps.x, ts = run.steps.t;
    const time = (step) => ts[Math.max(0, xs.findIndex((x) => x >= step))] ?? 0;
    const mark = (step, color, kind) => ({x: step, t: time(step), color, kind, run: i});
    const best = run.better.first[run.better.first.length - 1];
    return [...run.skipped.first.map(([step]) => mark(step, "--bad", "tick")),
      ...run.not_finite.first.map(([step]) => mark(step, "--bad", "tick")),
      ...run.resumed_at.map((step) => mark(step, "--warn", "line")),
      ...(best && single ? [mark(best[0], "--good", "line")] : [])];
  }

  function legendOfMarks() {
    const sum = (key) => runs.reduce((all, run) => all + run[key].count, 0);
    const says = [];
    const add = (color, sign, text) => says.push(el("span", {}, el("i", {className: sign, style: `color:var(${color})`}), text));
    if (sum("not_finite")) add("--bad", "tick", `values not finite: ${Format.count(sum("not_finite"))} (gaps in the line)`);
    if (sum("skipped")) add("--bad", "tick", `steps skipped: ${Format.count(sum("skipped"))}`);
    if (runs.some((run) => run.resumed_at.length)) add("--warn", "dashes", "resumed");
    if (!single) says.push(el("span", {}, "Solid: training. Dashed: validation."));
    if (single && runs[0].better.count) add("--good", "dashes", "best validation");
    if (runs.some((run) => run.steps.curves.some((curve) => curve.lo))) says.push(el("span", {}, "The band covers the values of all steps; the line is their mean."));
    $("marks").append(...says);
  }

  const isShare = (name) => /accuracy|^top\d/.test(name);
  const isLoss = (name) => /loss|perplexity|rmse|mse/i.test(name);

  // Bytes in a unit that gives round numbers on the axis.
  function memoryUnit() {
    const numbers = runs.flatMap((run) => run.steps.curves.filter((curve) => curve.kind === "memory").flatMap((curve) => (curve.hi || curve.mean).filter(Number.isFinite)));
    const large = numbers.some((value) => value >= 2 ** 30), size = large ? 2 ** 30 : 2 ** 20;
    const scaled = (list) => list?.map((value) => typeof value === "number" ? value / size : value);
    return {scale: ({mean, lo, hi}) => ({mean: scaled(mean), lo: scaled(lo), hi: scaled(hi)}),
      format: (value) => Number(value.toPrecision(4)) + (large ? " GiB" : " MiB")};
  }

  // One chart per name, shared by training and all splits.
  function collect() {
    const charts = new Map();
    const chart = (name, extra) => {
      if (!charts.has(name)) charts.set(name, {title: name, lines: [], marks: runs.flatMap(marks), format: isShare(name) ? Format.percent : Format.plain, logable: isLoss(name), ...extra});
      return charts.get(name);
    };
    const label = (i, what) => single ? what : what === "train" ? names[i] : `${names[i]} ${what}`;
    const line = (places, curve, i, what, color) => ({label: label(i, what), run: i, color: single ? color : `--run${i % 8}`, x: places.x, t: places.t,
      first: places.first, mean: values(curve.mean), lo: values(curve.lo), hi: values(curve.hi)});
    const memory = memoryUnit();
    runs.forEach((run, i) => {
      for (const curve of run.steps.curves.filter((each) => each.kind === "scalar" && each.name !== "skipped"))
        chart(curve.name).lines.push({...line(run.steps, curve, i, "train", "--train"), smooth: true, width: 1.3});
      for (const curve of run.evaluated) {
        if (curve.split === "test" && curve.x.length === 1 && !single) continue;
        chart(curve.metric).lines.push({...line(curve, curve, i, curve.split, curve.split === "test" ? "--test" : "--val"), dots: true, width: 2,
          dash: single ? null : [6, 3]});
      }
      const named = (kind) => run.steps.curves.find((curve) => curve.kind === kind);
      const derived = (name, kind, extra, change) => {
        const curve = named(kind);
        if (curve) chart(name, extra).lines.push({...line(run.steps, change ? change(curve) : curve, i, "train", "--train"), smooth: kind !== "lr"});
      };
      derived("learning rate", "lr", {low0: true});
      derived("samples per second", "throughput", {low0: true});
      const seconds = named("seconds");
      if (seconds) derived("share of time waiting for data", "data_wait", {low0: true, format: Format.percent}, (wait) =>
        ({mean: wait.mean.map((value, k) => typeof value === "number" && seconds.mean[k] > 0 ? value / seconds.mean[k] : value)}));
      derived("memory between steps", "memory", {low0: true, format: memory.format}, memory.scale);
    });
    return charts;
  }

  function curves() {
    const charts = collect();
    if (!charts.size) {
      show("charts", el("p", {className: "note"}, "No curves: no step and no evaluation was recorded."));
      $("controls").hidden = true;
      return;
    }
    $("charts").hidden = false;
    const last = ["learning rate", "samples per second", "share of time waiting for data", "memory between steps"];
    const first = [...charts.keys()].filter((name) => !last.includes(name));
    first.sort((a, b) => isLoss(b) - isLoss(a) || isShare(b) - isShare(a));
    const shown = [...first.slice(0, 6), ...last.filter((name) => charts.has(name))], folded = first.slice(6);
    shown.forEach((name) => Charts.add($("grid"), charts.get(name)));
    Charts.redraw();
    if (folded.length) {
      $("more").hidden = false;
      $("more").querySelector("summary").textContent = `${folded.length} more curves`;
      $("more").addEventListener("toggle", () => {
        folded.splice(0).forEach((name) => Charts.add($("more").querySelector(".grid"), charts.get(name)));
        Charts.redraw();
      });
    }
    legendOfMarks();
    $("smoothing").addEventListener("input", (event) => {
      Charts.settings.smoothing = event.target.value / 100;
      event.target.nextElementSibling.textContent = event.target.value / 100;
      Charts.redraw();
    });
    $("axis").addEventListener("change", (event) => { Charts.unzoom(); Charts.settings.axis = event.target.value; Charts.redraw(); });
    $("log").addEventListener("change", (event) => { Charts.settings.log = event.target.checked; Charts.redraw(); });
    $("unzoom").addEventListener("click", Charts.unzoom);
  }

  function exhibits() {
    const things = data.artifacts || [], of = (kind) => things.filter((thing) => thing.kind === kind);
    if (of("gallery").length) show("images", ...of("gallery").map(Exhibits.gallery));
    if (of("text").length) show("texts", Exhibits.texts(of("text")));
    if (of("matrix").length) show("matrices", ...of("matrix").map(Exhibits.matrix));
    if (of("memory").length) show("memory", ...of("memory").map(Memory.block));
    if (of("table").length) show("tables", ...of("table").map((thing) => Exhibits.block(thing, Exhibits.table(thing.columns, thing.rows))));
  }

  function anatomy() {
    if (single && runs[0].anatomy) show("anatomy", Anatomy.block(runs[0].anatomy));
    if (!single && runs.some((run) => run.anatomy)) show("anatomy", Anatomy.compared(runs, names));
  }

  function ranks() {
    const ms = (value) => value === null ? "–" : Number(value.toPrecision(3)).toLocaleString("en-US"), of = single && runs[0].ranks;
    if (!of) return;
    show("ranks", el("p", {}, `${Format.count(of.steps)} steps; ${Format.percent(of.exposed)} of the time in exchanges that nothing hid, after the last rank had come. Milliseconds of a step:`),
      Exhibits.table(["rank", "host", "computing", "data", "saving", "of these without a core", "waiting for others"], of.ranks, {2: ms, 3: ms, 4: ms, 5: ms, 6: ms}));
    if (of.left_out) show("ranks", el("p", {className: "note"}, `${Format.count(of.left_out)} more ranks waited longer.`));
    if (of.buckets.length) show("ranks", el("details", {style: "margin-top:10px"}, el("summary", {}, "buckets of gradients"),
      Exhibits.table(["bucket", "bytes", "ms a step", "MB/s"], of.buckets, {2: ms, 3: ms})));
  }

  function plans() {
    if (!single) {
      const rows = data.differences.map((row) => [row.key, ...row.values.map((value) => value ?? "–")]);
      show("differences", rows.length ? Exhibits.table(["key", ...names], rows) : el("p", {}, "The plans are equal."));
    } else if (runs[0].plan.length) {
      show("plan", ...Exhibits.plan(runs[0].plan));
      if (data.config) show("plan", el("details", {style: "margin-top:10px"}, el("summary", {}, "config.toml"), el("pre", {}, data.config)));
    }
  }

  function machineValue(key, value) {
    return /bytes$/.test(key) && Number(value) > 0 ? Format.bytes(Number(value)) : value;
  }

  function ending() {
    runs.forEach((run, i) => {
      const title = () => single ? [] : [el("h3", {}, names[i])];
      const says = [...run.findings, ...run.faults.first.slice(0, 20).map(([, text]) => text),
        ...(run.faults.count > 20 ? [`and ${Format.count(run.faults.count - 20)} more like these`] : []), ...run.unread.map((text) => "not shown: " + text)];
      if (says.length) show("findings", ...title(), el("ul", {}, ...says.map((text) => el("li", {}, text))));
      const same = runs.findIndex((other) => JSON.stringify(other.machine) === JSON.stringify(run.machine)) < i;
      if (run.machine.length && !same) show("machine", ...title(), el("dl", {}, ...run.machine.flatMap(([key, value]) => [el("dt", {}, key.replace(/_bytes$/, "")), el("dd", {}, machineValue(key, value))])));
      if (single) show("commands", ...run.commands.map(([command, what]) => el("div", {className: "command"}, ...(command ? [el("code", {}, command)] : []), el("span", {className: "note"}, what))));
    });
  }

  function nav() {
    for (const section of document.querySelectorAll("main > section:not([hidden])")) {
      const count = section.id === "findings" ? ` (${section.querySelectorAll("li").length})` : "";
      $("nav").append(el("a", {href: "#" + section.id}, section.querySelector("h2").textContent + count));
    }
  }

  header();
  if (single) timeline();
  curves();
  if (single && runs[0].monitor) Monitor.fill($("monitor"), runs[0].monitor);
  anatomy();
  ranks();
  exhibits();
  plans();
  ending();
  nav();

  // For printing: light theme and the width of the paper.
  let before = null;
  addEventListener("beforeprint", () => {
    before = Theme.name();
    document.body.classList.add("printing");
    Theme.set("light");
    Charts.resize();
  });
  addEventListener("afterprint", () => {
    document.body.classList.remove("printing");
    Theme.set(before);
    Charts.resize();
  });
})();
