// SPDX-License-Identifier: Apache-2.0
// Shared by the pages for images, tables and texts: findings, histograms and tables.
"use strict";

const number = (value) => Math.round(value).toLocaleString("en-US");
const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
const megabytes = (bytes) => bytes >= 1e9 ? (bytes / 1e9).toFixed(2) + " GB" : bytes >= 1e6 ? (bytes / 1e6).toFixed(1) + " MB" : bytes >= 1e3 ? (bytes / 1e3).toFixed(1) + " kB" : number(bytes) + " B";

function table(head, rows) {
  return el("div", {className: "scroll"}, el("table", {}, el("thead", {}, el("tr", {}, ...head.map((text) => el("th", {}, text)))), el("tbody", {}, ...rows)));
}

function finding(each) {
  const made = el("article", {className: "finding " + each.grade, id: "finding-" + each.id},
    el("h3", {}, el("span", {className: "grade"}, each.grade), each.text));
  if (each.example) made.append(el("p", {}, "For example: " + each.example));
  if (each.advice) made.append(el("p", {className: "advice"}, "What to do: " + each.advice));
  return made;
}

// A histogram; noun: what is counted.
function plot(title, values, show, noun) {
  const highest = Math.max(...values.bins.map((bin) => bin.count)), few = values.bins.every((bin) => bin.from === bin.to);
  const bars = values.bins.map((bin) => el("i", {
    style: `height:${bin.count ? Math.max(2, 100 * bin.count / highest) : 0}%`,
    title: `${few ? show(bin.from) : show(bin.from) + " to " + show(bin.to)}: ${plural(bin.count, noun)}`}));
  const ends = few && values.bins.length <= 6 ? values.bins.map((bin) => show(bin.from)) : [show(values.least), show(values.most)];
  const spaced = few && values.bins.length <= 6 ? " few" : "";
  return el("figure", {}, el("figcaption", {}, title, el("span", {}, `median ${show(values.median)}`)),
    el("div", {className: "bars" + spaced}, ...bars), el("div", {className: "ends" + spaced}, ...ends.map((text) => el("span", {}, text))));
}

function tile([value, text, bad]) {
  return el("div", {className: "tile"}, el("b", {className: bad ? "bad" : ""}, value), el("span", {}, text));
}

$("made").textContent = `Made by stoker inspect ${data.stoker}. The page needs no network.`;
