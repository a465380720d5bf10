// SPDX-License-Identifier: Apache-2.0
// Builds the doctor's page from its JSON block. The evidence of a finding can be shown: everything else fades.
"use strict";

(() => {
  const {time, percent, count, key, table, section, hint} = TraceParts;
  const words = {compute: "compute", communication: "communication", memory: "copies and fills", operator: "operator", runtime: "call of CUDA or HIP",
    annotation: "range", python: "Python", ...data.words};
  const name = (part) => words[part] ?? part.replaceAll("_", " ");
  const gain = (speedup) => `${speedup.likely.toFixed(2)}× (${speedup.low.toFixed(2)} to ${speedup.high.toFixed(2)})`;
  const seconds = data.columns.reduce((sum, each) => sum + each.seconds, 0);
  const totals = {};
  for (const column of data.columns) for (const [part, spent] of Object.entries(column.parts)) totals[part] = (totals[part] ?? 0) + spent;
  const parts = Object.keys(totals).filter((part) => totals[part] > 0).sort((a, b) => totals[b] - totals[a]);

  let shown = null, line = null;
  const listeners = [];
  // Shows these parts alone; the same ones again: all.
  function show(some) {
    shown = some && shown && some.join() === shown.join() ? null : some;
    for (const listen of listeners) listen(shown);
    if (line) line.mark(shown);
  }

  function scale(speedup, most) {
    const at = (value) => 100 * Math.min(1, Math.max(0, (value - 1) / (most - 1)));
    return [el("div", {className: "gain", title: gain(speedup)}, el("i", {style: `left:${at(speedup.low)}%;width:${at(speedup.high) - at(speedup.low)}%`}),
      el("b", {style: `left:calc(${at(speedup.likely)}% - 1px)`})), el("div", {className: "scale"}, el("span", {}, "1×"), el("span", {}, `${most.toFixed(1)}×`))];
  }

  function finding(each, number, most) {
    const evidence = data.parts[number];
    const button = el("button", {type: "button"}, "show it below");
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      show(evidence);
      if (shown) $(line ? "line" : "time").scrollIntoView({behavior: "smooth"});
    });
    listeners.push((some) => button.setAttribute("aria-pressed", String(some !== null && some.join() === evidence.join())));
    return el("article", {className: each.critical ? "finding critical" : "finding"},
      el("h3", {}, `${number + 1}. ${each.rule}`, el("small", {}, each.danger ?? `the cure makes it ${gain(each.speedup)} as fast`)), el("p", {}, each.claim),
      ...(each.danger ? [] : scale(each.speedup, most)), el("ul", {}, ...each.evidence.map((text) => el("li", {}, text))),
      el("p", {}, el("span", {className: "do"}, "Do: "), each.cure, ...(each.option ? [" ", el("code", {}, each.option)] : [])),
      el("p", {className: "note"}, "Wrong if: " + each.disproof), ...(evidence.length ? [button] : []));
  }

  function findings() {
    const most = Math.max(1.2, Math.min(10, ...data.findings.filter((each) => !each.danger).map((each) => each.speedup.high)));
    const small = data.below_threshold.map((each) => `${each.rule} ${gain(each.speedup)}`).join(", ");
    return section("What was found", ...(data.findings.length ? data.findings.map((each, i) => finding(each, i, most)) : [hint("Nothing whose cure would gain 2 % or more.")]),
      ...(small ? [hint("Too small to matter: " + small)] : []));
  }

  function columns() {
    const pieces = [];
    const made = data.columns.map((column) => el("div", {title: `up to step ${count(column.last_step)}: ${time(1e3 * column.seconds / column.steps)} per step\n` +
      parts.filter((part) => column.parts[part] > 0).map((part) => `${name(part)} ${percent(column.parts[part] / column.seconds)}`).join("\n")},
      ...parts.filter((part) => column.parts[part] > 0).map((part) => {
        const piece = el("i", {style: `height:${100 * column.parts[part] / column.seconds}%;background:var(--c-${part}, var(--c-python))`});
        pieces.push([piece, part]);
        return piece;
      })));
    listeners.push((some) => pieces.forEach(([piece, part]) => piece.classList.toggle("faded", some !== null && !some.includes(part))));
    const legend = parts.map((part) => {
      const button = el("button", {type: "button"}, el("i", {className: "key", style: `background:var(--c-${part}, var(--c-python))`}), `${name(part)} ${percent(totals[part] / seconds)}`);
      button.addEventListener("click", () => show([part]));
      listeners.push((some) => button.setAttribute("aria-pressed", String(some !== null && some.includes(part))));
      return button;
    });
    const first = data.columns[0];
    return section("Where the time went", hint(`${count(data.steps)} steps, ${time(1e3 * seconds)}; each column is a part of the training, from left to right. Click a name to see it alone.`),
      el("div", {className: "columns"}, ...made), el("div", {className: "axis"}, el("span", {}, `step ${count(first.last_step - first.steps + 1)}`), el("span", {}, `step ${count(data.columns.at(-1).last_step)}`)),
      el("div", {className: "legend"}, ...legend));
  }

  function rest() {
    const column = (head, of) => ({head, of, number: false});
    const made = [];
    if (data.switches.length) {
      made.push(section("Switches", table([column("switch", (row) => row.name), column("is", (row) => row.value), column("better", (row) => row.wanted ?? "–")], data.switches)));
    }
    const reasons = {};
    for (const each of data.undecided) (reasons[each.missing] ??= []).push(each.rule);
    if (data.undecided.length) {
      made.push(section("What could not be told", table([column("for lack of", (row) => row[0]), column("rules", (row) => row[1].join(", "))], Object.entries(reasons))));
    }
    return made;
  }

  const tile = (value, text) => el("div", {className: "tile"}, el("b", {}, value), el("span", {}, text));
  const best = data.findings.find((each) => !each.danger);
  $("tiles").append(...(data.steps ? [tile(time(1e3 * seconds / data.steps), "per step"), tile(count(data.steps), data.steps === 1 ? "step" : "steps")] : []),
    tile(count(data.findings.length), data.findings.length === 1 ? "finding" : "findings"), ...(best ? [tile(best.speedup.likely.toFixed(2) + "×", "the first cure promises")] : []));
  $("subtitle").textContent = data.file;
  $("findings").append(...data.damage.map((text) => el("p", {className: "warn"}, text)), findings());
  if (data.columns.length) $("time").append(columns());
  if (data.line) {
    line = TimeLine.make(data.line, words);
    $("line").append(section(`Time line of ${data.line.title}`, line));
  }
  $("rest").append(...rest());
  $("made").textContent = "Made by stoker doctor. The page needs no network.";
})();
