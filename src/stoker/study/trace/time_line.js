// SPDX-License-Identifier: Apache-2.0
// The time line of a step on a canvas: idle time of devices coloured by cause, streams, threads with nested calls. Zoom
// and move with the mouse or the keyboard; arrows and Tab reach everything.
"use strict";

const TimeLine = (() => {
  const {time} = TraceParts;
  const kRow = 17, kGap = 9, kLabel = 15, kAxis = 22, kLeast = 0.05;  // pixels; least span in µs

  function make(line, words) {
    const canvas = el("canvas", {tabIndex: 0});
    canvas.setAttribute("role", "application");
    canvas.setAttribute("aria-label", "time line; plus and minus zoom, arrows move, N goes to the next gap, Home shows all");
    const about = el("p", {className: "about"}, "Point at a bar, or press N for the longest idle gap.");
    about.setAttribute("aria-live", "polite");
    const view = {from: 0, to: line.us};
    let chosen = null, gap = -1, marked = null;  // kinds that are shown in full colour; null: all
    const tops = [];
    let height = kAxis;
    for (const row of line.rows) {
      tops.push(height + kLabel);
      height += kLabel + row.depth * kRow + kGap;
    }
    const events = line.events.map(([row, depth, begin, length, name, kind]) => ({row, depth, begin, length, name: line.names[name], kind: line.names[kind]}));
    const all_gaps = events.filter((each) => line.rows[each.row].kind === "idle").sort((a, b) => b.length - a.length);
    let gaps = all_gaps;
    const colour = (kind) => getComputedStyle(document.documentElement).getPropertyValue("--c-" + kind).trim() || colour("python");
    const themed = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

    function ticks(context, width) {
      const span = view.to - view.from, rough = span / Math.max(2, width / 120), power = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough);
      context.fillStyle = themed("--quiet");
      context.strokeStyle = themed("--grid");
      for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
        const x = Math.round((at - view.from) / span * width) + 0.5;
        context.beginPath();
        context.moveTo(x, kAxis - 6);
        context.lineTo(x, height);
        context.stroke();
        context.fillText(time(at / 1e3), x + 3, 12);
      }
    }

    function draw() {
      const width = canvas.clientWidth, ratio = devicePixelRatio || 1;
      if (!width) return;
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      canvas.style.height = height + "px";
      const context = canvas.getContext("2d"), scale = width / (view.to - view.from);
      context.scale(ratio, ratio);
      context.font = "11px system-ui, sans-serif";
      ticks(context, width);
      const colours = {}, ink = themed("--ink"), paper = themed("--paper");
      for (const each of events) {
        const x = (each.begin - view.from) * scale, w = Math.max(0.6, each.length * scale);
        if (x > width || x + w < 0) continue;
        const y = tops[each.row] + each.depth * kRow, left = Math.max(0, x), right = Math.min(width, x + w);
        context.globalAlpha = !marked || marked.has(each.kind) ? 1 : 0.15;
        context.fillStyle = colours[each.kind] ??= colour(each.kind);
        context.fillRect(left, y, Math.max(0.6, right - left - (w > 3 ? 1 : 0)), kRow - 2);
        if (right - left > 40) {
          const text = each.name || words[each.kind] || each.kind;
          context.save();
          context.beginPath();
          context.rect(left, y, right - left - 4, kRow);
          context.clip();
          context.fillStyle = ["runtime", "annotation", "python", "operator", "unattributed"].includes(each.kind) ? ink : paper;
          context.fillText(text, left + 4, y + 11.5);
          context.restore();
        }
        if (each === chosen) {
          context.strokeStyle = ink;
          context.lineWidth = 2;
          context.strokeRect(left, y, Math.max(2, right - left - 1), kRow - 2);
          context.lineWidth = 1;
        }
      }
      context.globalAlpha = 1;
      context.fillStyle = themed("--quiet");
      line.rows.forEach((row, i) => context.fillText(row.label, 4, tops[i] - 4));
    }

    function tell(each) {
      chosen = each;
      about.replaceChildren(each ? el("span", {}, TraceParts.key(each.kind), el("b", {}, each.name || words[each.kind] || each.kind),
        ` · ${words[each.kind] ?? each.kind} · ${time(each.length / 1e3)}, begins at ${time(each.begin / 1e3)} · ${line.rows[each.row].label}`) : "");
      draw();
    }

    function show(from, to) {
      const span = Math.min(line.us, Math.max(kLeast, to - from));
      view.from = Math.max(0, Math.min(line.us - span, from));
      view.to = view.from + span;
      draw();
    }
    const zoom = (factor, at = (view.from + view.to) / 2) => show(at - (at - view.from) * factor, at + (view.to - at) * factor);
    const move = (share) => show(view.from + share * (view.to - view.from), view.to + share * (view.to - view.from));
    function go(direction) {
      if (!gaps.length) return;
      gap = (gap + direction + gaps.length) % gaps.length;
      const each = gaps[gap];
      show(each.begin - 2 * each.length, each.begin + 3 * each.length);
      tell(each);
    }
    const keys = {"+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2),
      Home: () => show(0, line.us), n: () => go(1), p: () => go(-1)};
    canvas.addEventListener("keydown", (event) => {
      if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      keys[event.key]();
    });

    const time_at = (x) => view.from + x / canvas.clientWidth * (view.to - view.from);
    function under(event) {
      const scale = canvas.clientWidth / (view.to - view.from), at = time_at(event.offsetX);
      let best = null;
      for (const each of events) {
        const y = tops[each.row] + each.depth * kRow;
        if (event.offsetY < y || event.offsetY >= y + kRow) continue;
        const distance = Math.max(each.begin - at, at - each.begin - each.length, 0) * scale;
        if (distance < 3 && (!best || distance < best.distance)) best = {each, distance};
      }
      return best && best.each;
    }
    let held = null;
    canvas.addEventListener("pointerdown", (event) => {
      held = {x: event.offsetX, from: view.from, to: view.to};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", () => { held = null; });
    canvas.addEventListener("pointermove", (event) => {
      if (held) {
        const by = (held.x - event.offsetX) / canvas.clientWidth * (held.to - held.from);
        show(held.from + by, held.to + by);
      } else {
        const each = under(event);
        if (each && each !== chosen) tell(each);
      }
    });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey && document.activeElement !== canvas) return;  // the page scrolls until the time line has the focus
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.25 : 0.8, time_at(event.offsetX));
    }, {passive: false});
    addEventListener("theme", draw);
    new ResizeObserver(draw).observe(canvas);

    const button = (text, title, act) => {
      const made = el("button", {type: "button", title}, text);
      made.addEventListener("click", act);
      return made;
    };
    const tools = el("div", {className: "tools"}, button("+", "zoom in (+)", keys["+"]), button("−", "zoom out (-)", keys["-"]),
      button("◂", "move left (arrow)", keys.ArrowLeft), button("▸", "move right (arrow)", keys.ArrowRight), button("all", "show all (Home)", keys.Home),
      ...(gaps.length ? [button("next gap", "next longest gap (N)", keys.n)] : []), el("span", {}, "click it, then turn the wheel to zoom; drag to move"));
    const kinds = [...new Set(events.map((each) => each.kind))];
    const legend = el("div", {className: "legend"}, ...kinds.map((kind) => el("span", {}, TraceParts.key(kind), words[kind] ?? kind)));
    const missing = [[line.left_out, "events are too short to draw"], [line.threads_left_out, "threads made fewer calls"]].filter(([number]) => number > 0)
      .map(([number, text]) => `${number.toLocaleString("en-US")} ${text}`);
    const left_out = missing.length ? TraceParts.hint(`Left out: ${missing.join("; ")}.`) : "";
    const made = el("div", {className: "timeline"}, tools, el("div", {className: "line"}, canvas), about, legend, left_out);
    // Dims all but these kinds, and goes to the longest gap of them; null shows all again.
    made.mark = (kinds) => {
      marked = kinds && new Set(kinds);
      gaps = marked ? all_gaps.filter((each) => marked.has(each.kind)) : all_gaps;
      gap = -1;
      if (marked && gaps.length) go(1);
      else draw();
    };
    return made;
  }

  return {make};
})();
