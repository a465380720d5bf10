// SPDX-License-Identifier: Apache-2.0
// Where the time of a run's steps went: a bar, a table, the course over the run, and the slowest steps.
"use strict";

const Anatomy = (() => {
  const svg = (name, properties, ...children) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(properties).forEach(([key, value]) => node.setAttribute(key, value));
    node.append(...children);
    return node;
  };
  // Hue and saturation; the lightness depends on the theme.
  const TONES = {fetch: [28, 90], copy: [46, 80], forward: [221, 75], loss: [200, 70], backward: [248, 55], "unscale and clip": [174, 55],
    optimizer: [142, 55], EMA: [96, 45], logging: [300, 25], "device wait": [0, 70], communication: [190, 60], checkpoint: [325, 65], evaluation: [280, 55], other: [220, 8]};
  const color = (name) => { const [hue, strength] = Object.hasOwn(TONES, name) ? TONES[name] : [60, 30]; return `hsl(${hue} ${strength}% var(--tone))`; };
  const swatch = (name) => el("span", {className: "swatch", style: `background:${color(name)}`});
  const ms = (seconds) => seconds === null ? "–" : Number((1e3 * seconds).toPrecision(3)).toLocaleString("en-US") + " ms";

  const percent = (share) => (100 * share).toFixed(1) + " %";
  const quantile = (seconds, longest) => longest === 0 ? "–" : ms(seconds);  // most steps have none of it

  // One bar of all phases. Phases too short to see are left to the table.
  function bar(anatomy) {
    return el("div", {className: "shares", role: "img", "ariaLabel": "share of each phase"}, ...anatomy.phases.filter((each) => each.seconds > 0).map((each) => {
      const share = each.seconds / anatomy.seconds;
      return el("i", {style: `flex:${share};background:${color(each.name)}`, title: `${each.name}: ${percent(share)}`}, share > 0.08 ? each.name : "");
    }));
  }

  function table(anatomy) {
    const any = (key) => anatomy.phases.some((each) => each[key] !== null);
    const columns = ["phase", "share", "half of the steps at most", "99 % at most", ...(any("cpu") ? ["computing"] : []), ...(any("device") ? ["device, per step"] : [])];
    const rows = anatomy.phases.filter((each) => each.seconds > 0 || each.device > 0).map((each) => el("tr", {}, el("td", {style: "white-space:nowrap"}, swatch(each.name), each.name),
      ...[percent(each.seconds / anatomy.seconds), quantile(each.p50, each.p99), quantile(each.p99, each.p99),
        ...(any("cpu") ? [each.cpu === null ? "–" : percent(Math.min(1, each.cpu / each.seconds))] : []),
        ...(any("device") ? [each.device === null ? "–" : ms(each.device / Math.max(1, anatomy.steps))] : [])].map((text) => el("td", {className: "number"}, text))));
    for (const [name, seconds] of anatomy.marks) {
      rows.push(el("tr", {}, el("td", {className: "note"}, name + " (a mark)"), el("td", {className: "number"}, percent(seconds / anatomy.seconds)),
        ...columns.slice(2).map(() => el("td", {}))));
    }
    return el("div", {className: "scroll"}, el("table", {}, el("thead", {}, el("tr", {}, ...columns.map((name, i) => el("th", {className: i ? "number" : ""}, name)))), el("tbody", {}, ...rows)));
  }

  // Milliseconds per step over the run, phases on top of each other.
  function course(anatomy) {
    const {x, steps, by} = anatomy.periods;
    if (x.length < 3) return [];
    const width = 900, height = 170, per = by.map((line) => line.map((seconds, i) => seconds / Math.max(1, steps[i])));
    const sums = x.map((_, i) => per.reduce((sum, line) => sum + line[i], 0)), known = [...sums].sort((a, b) => a - b);
    const top = Math.min(known[known.length - 1], 3 * known[Math.floor(known.length / 2)]) || 1;
    const first = x[0], last = x[x.length - 1], at = (i) => (width * (x[i] - first) / Math.max(1, last - first)).toFixed(1);
    const y = (value) => (height * (1 - Math.min(1, value / top))).toFixed(1);
    const below = x.map(() => 0);
    const areas = per.map((line, p) => {
      const low = x.map((_, i) => `${at(i)},${y(below[i])}`).reverse();
      line.forEach((value, i) => { below[i] += value; });
      const points = [...x.map((_, i) => `${at(i)},${y(below[i])}`), ...low].join(" ");
      return svg("polygon", {points, style: `fill:${color(anatomy.phases[p].name)}`}, svg("title", {}, anatomy.phases[p].name));
    });
    return [el("p", {className: "note"}, `Time of a step from step ${Format.count(first)} to ${Format.count(last)}, up to ${ms(top)}` + (known[known.length - 1] > top ? " (cut off)" : "") + ":"),
      svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", style: "width:100%;max-width:900px", preserveAspectRatio: "none", "aria-label": "time of a step over the run, by phase"}, ...areas)];
  }

  function slow(anatomy) {
    if (!anatomy.slow.length) return [];
    const rows = anatomy.slow.map(([step, seconds, usual, phase, cause]) => [step, ms(seconds), ms(usual), phase, cause || "unknown"]);
    const left = anatomy.slow_steps > rows.length ? `The ${rows.length} slowest of ${Format.count(anatomy.slow_steps)} that were recorded. ` : "";
    return [el("h3", {style: "margin:18px 0 8px"}, "Steps that took much longer than usual"),
      el("p", {className: "note"}, left + "At least three times as long as the median; few per phase and second are recorded."),
      Exhibits.table(["step", "took", "usual", "in", "cause"], rows)];
  }

  function block(anatomy) {
    const words = anatomy.p50 === null ? "" : ` Half of the steps took at most ${ms(anatomy.p50)}, 99 % at most ${ms(anatomy.p99)}, the slowest ${ms(anatomy.slowest)}; without evaluations and checkpoints.`;
    return el("div", {className: "block"}, el("p", {}, `${Format.count(anatomy.steps)} steps in ${Number(anatomy.seconds.toPrecision(3))} s of the training loop.${words}`),
      bar(anatomy), table(anatomy), ...course(anatomy), ...slow(anatomy));
  }

  // One bar per run.
  const compared = (runs, names) => el("div", {}, ...runs.flatMap((run, i) => run.anatomy ? [el("h3", {style: "margin:10px 0 4px"}, names[i]), bar(run.anatomy)] : []));

  return {block, compared};
})();
