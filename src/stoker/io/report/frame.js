// SPDX-License-Identifier: Apache-2.0
// What every page starts with: its data, elements, the dark and light theme. Text of a user is inserted only as text,
// never as HTML.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const el = (tag, properties, ...content) => {
  const made = Object.assign(document.createElement(tag), properties);
  if (properties.style) made.setAttribute("style", properties.style);
  made.append(...content);
  return made;
};

const Theme = (() => {
  const root = document.documentElement.dataset, dark = matchMedia("(prefers-color-scheme: dark)");
  // Whatever draws with the theme's colours listens for the event "theme".
  function set(name) {
    root.theme = name;
    dispatchEvent(new Event("theme"));
  }
  set(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => set(dark.matches ? "dark" : "light"));
  $("theme").addEventListener("click", () => set(root.theme === "dark" ? "light" : "dark"));
  return {set, name: () => root.theme};
})();
