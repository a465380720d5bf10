// SPDX-License-Identifier: Apache-2.0
// Builds the tips page from its JSON block: counts, a bar for each cell, mixed precision, the machine.
"use strict";

(() => {
  const kinds = {"helps": "helps", "helps (memory)": "memory", "no difference": "same", "hurts here": "hurts"};
  const cells = data.tips.flatMap((tip) => tip.cells.map((cell) => ({...cell, tip})));
  const measured = cells.filter((cell) => cell.ratio != null);

  // Three significant digits.
  function figure(value) {
    return value === null || value === undefined ? "–" : value.toFixed(value <= 0 ? 0 : Math.min(3, Math.max(0, 2 - Math.floor(Math.log10(value)))));
  }
  const ms = (seconds) => figure(seconds * 1e3), mb = (bytes) => figure(bytes === null ? null : bytes / 1e6);

  const times = (ratio) => ratio.toFixed(ratio >= 100 ? 0 : ratio >= 10 ? 1 : 2);

  // Position of a ratio in percent of the width: 1/4 at the left end, 1 in the middle, 4 at the right end.
  const place = (ratio) => 50 + 25 * Math.max(-2, Math.min(2, Math.log2(ratio)));

  function bar(cell) {
    const at = place(cell.ratio), low = place(cell.low), high = place(cell.high);
    const made = el("div", {className: "plotted " + kinds[cell.word], title: `${cell.tip.without} / ${cell.tip.with}: ${cell.ratio.toFixed(3)}, 95 % interval ${cell.low.toFixed(3)} to ${cell.high.toFixed(3)}, ${cell.pairs} pairs`},
      el("i", {style: `left:${Math.min(50, at)}%;width:${Math.abs(at - 50)}%`}), el("u", {}),
      el("s", {style: `left:${low}%;width:${high - low}%`}));
    if (cell.ratio > 4) made.append(el("em", {}, "▸"));
    return made;
  }

  function row(cell) {
    if (cell.ratio == null) {
      return el("div", {className: "cell note"}, el("span", {className: "model"}, cell.model), el("span", {}, cell.note ? "not measured: " + cell.note : "not measured"));
    }
    const made = el("div", {className: "cell"},
      el("span", {className: "model", title: data.models[cell.model] ?? ""}, cell.model), bar(cell),
      el("span", {className: "figure"}, times(cell.ratio) + " ", el("small", {}, `${times(cell.low)} – ${times(cell.high)}`)),
      el("span", {className: "figure"}, `${ms(cell.seconds_without)} → ${ms(cell.seconds_with)} `, el("small", {}, "ms")),
      el("span", {className: "figure"}, ...(cell.bytes_with === null ? ["–"] : [`${mb(cell.bytes_without)} → ${mb(cell.bytes_with)} `, el("small", {}, "MB")])),
      el("span", {className: "word " + kinds[cell.word]}, cell.word));
    made.dataset.model = cell.model;
    return made;
  }

  function scale() {
    const marks = [[0.25, "¼"], [0.5, "½"], [1, "1"], [2, "2"], [4, "4"]];
    const plotted = el("div", {className: "plotted scale"}, ...marks.map(([ratio, text]) =>
      el("b", {style: `left:${Math.max(1.5, Math.min(98.5, place(ratio)))}%`}, text)));
    return el("div", {className: "cell head"}, el("span", {className: "model"}), plotted, el("span", {className: "figure"}),
      el("span", {className: "figure"}), el("span", {className: "figure"}), el("span", {className: "word"}));
  }

  function tip(each) {
    const beside = each.note ? "not measured: " + each.note : `${each.without} → ${each.with}`;
    const made = el("section", {className: "tip", id: each.id}, el("header", {}, el("h3", {}, each.title), el("span", {}, beside)));
    if (!each.note) {
      made.append(...(each.cells.some((cell) => cell.ratio != null) ? [scale()] : []), ...each.cells.map((cell) => row({...cell, tip: each})));
    }
    return made;
  }

  function table(head, rows) {
    return el("div", {className: "scroll"}, el("table", {}, el("thead", {}, el("tr", {}, ...head.map((text) => el("th", {}, text)))),
      el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, cell)))))));
  }

  function precision() {
    const of = (id, model) => measured.find((cell) => cell.tip.id === id && cell.model === model);
    const rows = ["mlp", "unet", "bert"].filter((model) => of("autocast-bf16", model) || of("autocast-fp16", model)).map((model) => {
      const bf16 = of("autocast-bf16", model), fp16 = of("autocast-fp16", model), any = bf16 ?? fp16;
      const text = (seconds, bytes) => `${ms(seconds)} ms, ${mb(bytes)} MB`;
      return [model, text(any.seconds_without, any.bytes_without), ...[bf16, fp16].map((cell) => cell ? text(cell.seconds_with, cell.bytes_with) : "–")];
    });
    if (!rows.length) return;
    $("precision").append(table(["model", "fp32", "bf16", "fp16"], rows));
    $("precision").hidden = false;
  }

  function accuracy() {
    if (!data.accuracies.length) return;
    $("accuracy").append(table(["model", "batch x steps", "accuracy per seed"], data.accuracies.map((each) =>
      [each.model, each.schedule, each.accuracy.map((value) => (100 * value).toFixed(1) + " %").join("  ")])));
    $("accuracy").hidden = false;
  }

  function machine() {
    const load = (value) => value === null ? "unknown" : value.toFixed(2);
    const rows = {
      "device": data.device, "CPU": `${data.cpu}, ${data.cores_used} of ${data.cores} cores, intra-op threads: ${data.intra_op}`,
      "memory": data.memory_bytes === null ? "unknown" : (data.memory_bytes / 1e9).toFixed(1) + " GB", "kernel": data.kernel,
      ...(data.device === "cpu" ? {} : {"fp32": "matrix products use TF32, the engine's default, except where a row says float32"}),
      "versions": `stoker ${data.stoker}, torch ${data.torch}, g++ ${data.compiler}`,
      "load": `${load(data.load_before)} before, ${load(data.load_after)} after`,
      "took": `${Math.round(data.seconds_taken)} s${data.quick ? ", quick: minimum number of pairs" : ""}`, "clock": data.clock};
    $("machine").append(el("dl", {}, ...Object.entries(rows).flatMap(([key, value]) => [el("dt", {}, key), el("dd", {}, value)])));
  }

  const count = (word) => measured.filter((cell) => cell.word === word).length;
  $("tiles").append(...Object.entries(kinds).map(([word, kind]) =>
    el("div", {className: "tile"}, el("b", {className: kind}, String(count(word))), el("span", {}, word))));
  $("subtitle").textContent = `${data.cpu}, ${data.device === "cpu" ? `${data.intra_op} intra-op thread${data.intra_op === 1 ? "" : "s"}` : data.device}; ${data.date.replace("T", " ").replace("Z", " UTC")}`;
  if (data.stopped) {
    $("state").textContent = "stopped early";
    $("state").classList.add("stopped");
  }
  $("tips").append(...data.tips.map(tip));
  precision();
  accuracy();
  machine();
  $("made").textContent = `Made by stoker bench tips. The page needs no network.`;
  $("model").append(...[...new Set(measured.map((cell) => cell.model))].map((name) => el("option", {value: name}, data.models[name] ? `${name}: ${data.models[name]}` : name)));
  $("model").addEventListener("change", () => {
    const wanted = $("model").value;
    for (const each of document.querySelectorAll(".tip")) {
      const rows = [...each.querySelectorAll("[data-model]")];
      rows.forEach((row) => { row.hidden = wanted !== "" && row.dataset.model !== wanted; });
      each.hidden = wanted !== "" && rows.every((row) => row.hidden);
    }
  });
})();
