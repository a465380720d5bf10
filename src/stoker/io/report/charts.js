// SPDX-License-Identifier: Apache-2.0
// Curves of report.html on dygraphs. A chart is {title, format, low0, logable, axis, lines, marks}; axis: "t" keeps it on time; a line {label, color, run,
// x, t, mean, lo, hi, first, smooth, dots, width, dash}: null is a missing value, NaN a value that was not finite (a gap).
"use strict";

const Format = {
  plain(value) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e6 || size < 1e-3) return value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
    if (size >= 1000) return Math.round(value).toLocaleString("en-US");
    return String(Number(value.toPrecision(4)));
  },
  percent: (value) => Number((100 * value).toPrecision(3)) + " %",
  bytes(value) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    for (; Math.abs(value) >= 1024 && unit < 4; ++unit) value /= 1024;
    return Number(value.toPrecision(3)) + " " + units[unit];
  },
  count: (value) => Math.round(value).toLocaleString("en-US"),
  axisCount(value) {
    if (Math.abs(value) >= 1e6) return Number((value / 1e6).toPrecision(4)) + "M";
    return Math.abs(value) >= 1e4 ? Number((value / 1e3).toPrecision(4)) + "k" : String(value);
  },
};

const Charts = (() => {
  const all = [];
  const settings = {smoothing: 0, axis: "x", log: false, hidden: new Set(), windows: {}};
  let following = false;  // true while the zoom of one chart is applied to the others

  const themed = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Bias-corrected exponential mean; missing values and values that are not finite are kept.
  function smoothed(values, strength) {
    let mean = 0, weight = 0;
    return values.map((value) => {
      if (value === null || Number.isNaN(value)) return value;
      mean = strength * mean + (1 - strength) * value;
      weight = strength * weight + (1 - strength);
      return mean / weight;
    });
  }

  // Unit of the time axis that keeps its numbers short: seconds, minutes or hours.
  function timeUnit() {
    const longest = Math.max(...all.flatMap((each) => each.lines.map((line) => line.t[line.t.length - 1] || 0)));
    return longest > 3 * 3600 ? {name: "hours", size: 3600} : longest > 180 ? {name: "minutes", size: 60} : {name: "seconds", size: 1};
  }

  const axisOf = (chart) => chart.axis || settings.axis;
  // Charts that zoom together.
  const family = (chart) => chart.axis ? "own" : "shared";

  // The last position over these charts, so that they show the same range.
  const extent = (of) => Math.max(...all.filter((chart) => family(chart) === family(of)).flatMap((chart) => chart.lines.map((line) => line[axisOf(of)][line.x.length - 1] || 0)));

  // Rows for dygraphs: the union of the positions of all lines, [x, [lo, mean, hi] or null, ...], two columns for a smoothed line.
  function table(chart, unit) {
    const columns = [], places = new Map();
    for (const line of chart.lines) {
      if (settings.hidden.has(line.run)) continue;
      const xs = axisOf(chart) === "t" ? line.t.map((t) => t / unit.size) : line.x;
      const soft = line.smooth && settings.smoothing > 0;
      if (soft) columns.push({line, xs, values: line.mean, faint: true});
      columns.push({line, xs, values: soft ? smoothed(line.mean, settings.smoothing) : line.mean, band: true});
      xs.forEach((x) => places.set(x, 0));
    }
    if (columns.length) for (const x of [0, extent(chart) / (axisOf(chart) === "t" ? unit.size : 1)]) places.set(x, 0);
    const xs = [...places.keys()].sort((a, b) => a - b);
    xs.forEach((x, i) => places.set(x, i));
    const rows = xs.map((x) => [x, ...columns.map(() => null)]);
    columns.forEach((column, c) => column.xs.forEach((x, i) => {
      const value = column.values[i];
      if (value === null) return;
      const band = column.band && column.line.lo && column.line.lo[i] !== null;
      rows[places.get(x)][c + 1] = band ? [Math.min(column.line.lo[i], value), value, Math.max(column.line.hi[i], value)] : [value, value, value];
    }));
    return {columns, rows: rows.length ? rows : [[0, ...columns.map(() => null)]]};
  }

  function legend(chart, x) {
    chart.legend.replaceChildren(...chart.lines.filter((line) => !settings.hidden.has(line.run)).map((line) => {
      let at = line.mean.length - 1;  // the last value, or the one nearest to the pointer
      if (x !== null) {
        const xs = axisOf(chart) === "t" ? line.t.map((t) => t / chart.unit.size) : line.x;
        for (let i = 0, best = Infinity; i < xs.length; ++i) {
          const distance = Math.abs(xs[i] - x);
          if (distance <= best && line.mean[i] !== null) { best = distance; at = i; }
        }
      } else {
        while (at > 0 && line.mean[at] === null) --at;
      }
      const value = line.mean[at];
      let text = value === null ? "–" : Number.isNaN(value) ? "not finite" : chart.format(value);
      if (x !== null && line.lo && line.lo[at] !== null && line.lo[at] !== line.hi[at])
        text += ` (${chart.format(line.lo[at])} to ${chart.format(line.hi[at])})`;
      const span = el("span", {}, el("i", {style: `background:var(${line.color})`}), line.label + " ", el("b", {}, text));
      if (x !== null || chart.lines.length === 1) {
        const first = line.first ? line.first[at] : line.x[at];
        span.append(first < line.x[at] ? ` steps ${Format.count(first)}–${Format.count(line.x[at])}` : ` step ${Format.count(line.x[at])}`);
      }
      return span;
    }));
  }

  // Points whose highest or lowest value is far outside the band: [index, value]. In the band alone, one step among
  // hundreds would be too thin to see.
  function spikes(line) {
    const of = (values) => {
      if (!values) return [];
      const distances = line.mean.map((mean, i) => mean === null || values[i] === null ? NaN : Math.abs(values[i] - mean));
      const known = distances.filter((each) => !Number.isNaN(each)).sort((a, b) => a - b);
      const usual = known[Math.floor(known.length / 2)] || 0;
      return distances.map((distance, i) => [i, distance]).filter(([, distance]) => usual > 0 && distance > 4 * usual)
        .sort((a, b) => b[1] - a[1]).slice(0, 100).map(([i]) => [i, values[i]]);
    };
    return line.spikes ??= [...of(line.hi), ...of(line.lo)];
  }

  function drawSpikes(chart, context, graph) {
    context.save();
    for (const line of chart.lines) {
      if (settings.hidden.has(line.run)) continue;
      context.strokeStyle = themed(line.color);
      for (const [i, value] of spikes(line)) {
        const x = Math.round(graph.toDomXCoord(axisOf(chart) === "t" ? line.t[i] / chart.unit.size : line.x[i])) + 0.5;
        context.beginPath();
        context.moveTo(x, graph.toDomYCoord(line.mean[i]));
        context.lineTo(x, graph.toDomYCoord(value));
        context.stroke();
      }
    }
    context.restore();
  }

  // Marks behind the lines: {x, t, color, kind}; "line" over the whole height, "tick" at the top.
  function drawMarks(chart, context, area, graph) {
    context.save();
    for (const mark of chart.marks) {
      if (settings.hidden.has(mark.run)) continue;
      const x = graph.toDomXCoord(axisOf(chart) === "t" ? mark.t / chart.unit.size : mark.x);
      if (x < area.x - 1 || x > area.x + area.w + 1) continue;
      context.strokeStyle = context.fillStyle = themed(mark.color);
      context.setLineDash(mark.kind === "line" ? [3, 4] : []);
      context.globalAlpha = mark.kind === "line" ? 0.8 : 1;
      context.beginPath();
      if (mark.kind === "line") {
        context.moveTo(x, area.y);
        context.lineTo(x, area.y + area.h);
        context.stroke();
      } else {
        context.moveTo(x - 4, area.y);
        context.lineTo(x + 4, area.y);
        context.lineTo(x, area.y + 8);
        context.fill();
      }
    }
    context.restore();
  }

  function passOn(from) {
    if (following) return;
    following = true;
    const own = settings.windows[family(from)] = from.graph.isZoomed("x") ? from.graph.xAxisRange() : null;
    for (const chart of all) if (chart !== from && family(chart) === family(from)) chart.graph.updateOptions({dateWindow: own});
    following = false;
    document.getElementById("unzoom").hidden = !Object.values(settings.windows).some(Boolean);
  }

  function options(chart, columns) {
    const series = {}, labels = ["x"], colors = [];
    columns.forEach((column, i) => {
      labels.push("c" + i);
      colors.push(themed(column.line.color));
      series["c" + i] = {
        strokeWidth: column.faint ? 0.6 : column.line.width || 1.6, strokePattern: column.line.dash || null,
        drawPoints: !!column.line.dots && column.xs.length <= 60, pointSize: 2.5,
        highlightCircleSize: column.faint ? 0 : 3.5,
      };
    });
    const log = settings.log && chart.logable && columns.every((column) => column.values.every((value) => value === null || !(value <= 0)));
    return {
      labels, colors, series, customBars: true, connectSeparatedPoints: true, legend: "never", fillAlpha: 0.2,
      logscale: log, includeZero: !!chart.low0 && !log, dateWindow: settings.windows[family(chart)] || null, xRangePad: 6, yRangePad: 10,
      gridLineColor: themed("--grid"), axisLineColor: themed("--line"), gridLineWidth: 1, labelsKMB: false,
      axes: {
        x: {axisLabelFormatter: axisOf(chart) === "t" ? (x) => Format.plain(x) : (x) => Number.isInteger(x) ? Format.axisCount(x) : "",
            pixelsPerLabel: 64, drawGrid: false},
        y: {axisLabelFormatter: (y) => chart.format(y), axisLabelWidth: 52, pixelsPerLabel: 34},
      },
    };
  }

  function draw(chart) {
    chart.unit = timeUnit();
    const {columns, rows} = table(chart, chart.unit);
    const wanted = options(chart, columns);
    if (!columns.length) Object.assign(wanted, {labels: ["x", "c0"], colors: [themed("--line")]});
    const data = columns.length ? rows : [[0, null]];
    if (chart.graph) {
      chart.graph.updateOptions({...wanted, file: data});
    } else {
      // No touch handlers: a finger scrolls the page and a tap shows values.
      const {mousedown, dblclick} = Dygraph.defaultInteractionModel;
      chart.graph = new Dygraph(chart.plot, data, {
        ...wanted,
        interactionModel: {mousedown, dblclick, willDestroyContextMyself: true},
        underlayCallback: (context, area, graph) => {
          drawMarks(chart, context, area, graph);
          drawSpikes(chart, context, graph);
        },
        zoomCallback: () => passOn(chart),
        highlightCallback: (event, x) => legend(chart, x),
        unhighlightCallback: () => legend(chart, null),
      });
    }
    legend(chart, null);
  }

  // Adds the card of a chart to parent; redraw() fills it.
  function add(parent, chart) {
    chart.legend = el("div", {className: "legend"});
    chart.plot = el("div", {className: "plot"});
    const widen = el("button", {type: "button", title: "make wider or narrower"}, "⤢");
    chart.card = el("article", {className: "chart"}, el("header", {}, el("h3", {}, chart.title), widen), chart.legend, chart.plot);
    widen.addEventListener("click", () => { chart.card.classList.toggle("wide"); chart.graph.resize(); });
    parent.append(chart.card);
    all.push(chart);
  }

  const redraw = () => all.forEach(draw);
  const resize = () => all.forEach((chart) => chart.graph?.resize());
  function unzoom() {
    settings.windows = {};
    document.getElementById("unzoom").hidden = true;
    following = true;
    all.forEach((chart) => chart.graph.resetZoom());
    following = false;
  }
  return {add, all, settings, redraw, resize, timeUnit, unzoom};
})();
