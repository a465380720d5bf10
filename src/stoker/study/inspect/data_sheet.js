// SPDX-License-Identifier: Apache-2.0
// Builds the page for a table or texts: findings, histograms, tables of numbers.
(() => {
  const show = (value) => value.toLocaleString("en-US", {maximumSignificantDigits: 6});
  const spaced = (name) => name.replaceAll("_", " ");

  function figures(name, rows) {
    const columns = Object.keys(rows[0]), numeric = columns.map((column) => typeof rows[0][column] === "number");
    const made = table(columns.map(spaced), rows.map((row) => el("tr", {}, ...columns.map((column, i) =>
      el("td", {className: numeric[i] ? "number" : ""}, numeric[i] ? show(row[column]) : String(row[column]))))));
    made.querySelectorAll("thead th").forEach((each, i) => each.classList.toggle("number", numeric[i]));
    return el("section", {id: "table-" + name}, el("h2", {}, spaced(name[0].toUpperCase() + name.slice(1))), made);
  }

  $("tiles").append(...Object.entries(data.counts).map(([name, count]) => tile([number(count), spaced(name)])));
  $("subtitle").textContent = `${data.kind}; inspected in ${data.seconds.toFixed(1)} s; ${data.date.replace("T", " ").replace("Z", " UTC")}`;
  $("findings").append(...data.findings.map(finding));
  $("findings").hidden = !data.findings.length;
  $("plots").querySelector(".plots").append(...data.distributions.map((each) => plot(each.of, each, show, data.kind === "table" ? "row" : "line")));
  $("plots").hidden = !data.distributions.length;
  $("tables").append(...Object.entries(data.tables).filter(([, rows]) => rows.length).map((each) => figures(...each)));
})();
