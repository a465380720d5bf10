// SPDX-License-Identifier: Apache-2.0
// Builds the page for images: findings with their images, contact sheet, histograms, classes.

(() => {
  function thumb(image) {
    const source = data.thumbnails[image.id];
    if (!source) return el("span", {className: "thumb gone", title: image.file});
    return el("img", {className: source.startsWith("data:image/png") ? "thumb small" : "thumb", src: source, alt: "", title: image.file});
  }

  // The file name alone: it says more than the folders.
  const tail = (file) => file.split("/").pop();

  function figure(image) {
    return el("figure", {title: image.file}, thumb(image),
      el("figcaption", {}, el("b", {}, `${image.split}, ${image.class}`), " " + tail(image.file)));
  }

  function strips(finding) {
    const groups = (finding.groups ?? []).slice(0, data.shown.groups).map((group) => group.slice(0, data.shown.of_group));
    const singles = (finding.images ?? []).filter((each) => !each.reason).slice(0, data.shown.images);
    if (singles.length) groups.push(singles);
    const shown = groups.filter((group) => group.some((each) => data.thumbnails[each.id]));
    return shown.length ? [el("div", {className: "strips"}, ...shown.map((group) => el("div", {className: "strip"}, ...group.map(figure))))] : [];
  }

  function listed(finding) {
    const groups = finding.groups ?? (finding.images ?? []).map((each) => [each]);
    if (!groups.length) return [];
    const bad = groups[0][0].reason !== undefined, several = finding.groups !== undefined;
    const rows = groups.flatMap((group, i) => group.map((each) => el("tr", {}, ...(several ? [el("td", {}, String(i + 1))] : []),
      el("td", {}, each.split), el("td", {}, each.class), el("td", {className: "file"}, each.file),
      el("td", {}, bad ? each.reason : `${each.width} × ${each.height}`))));
    const all = finding.groups ? finding.all_groups : groups.length >= finding.count;
    return [el("details", {open: bad && rows.length <= 8}, el("summary", {}, all ? "List" : "List of the first ones"),
      table([...(several ? ["group"] : []), "split", "class", "file", bad ? "error" : "pixels"], rows))];
  }

  function illustrated(each) {
    const made = finding(each);
    made.append(...strips(each), ...listed(each));
    return made;
  }

  const of_class = (label) => data.splits.map((split) => split.by_class[label]);

  function sheet() {
    const shown = data.sheet.length, all = data.classes.length;
    if (shown < all) $("sheet").append(el("p", {className: "note"}, `${shown} of ${number(all)} classes.`));
    $("sheet").append(...data.sheet.map((row) => el("div", {className: "row"},
      el("header", {}, el("b", {}, data.classes[row.class]), el("span", {}, plural(of_class(row.class).reduce((a, b) => a + b, 0), "image"))),
      el("div", {className: "images"}, ...row.images.filter((each) => data.thumbnails[each.id]).map(thumb)))));
    $("sheet").hidden = !shown;
  }

  function sizes() {
    const pixels = (value) => number(value);
    const plots = [["Width, pixels", data.width, pixels], ["Height, pixels", data.height, pixels], ["Aspect ratio (width / height)", data.aspect, (value) => value.toFixed(2)],
      ["File size", data.file_bytes, megabytes]];
    $("sizes").querySelector(".plots").append(...plots.filter(([, values]) => values.bins.length).map((each) => plot(...each, "image")));
    if (plots.some(([, values]) => values.bins.some((bin) => bin.from !== bin.to))) {
      $("sizes").append(el("p", {className: "note"}, "With many values the scale is logarithmic: each bar covers the same ratio."));
    }
    $("sizes").hidden = !data.width.bins.length;
  }

  const counts = (all) => Object.entries(all).sort((a, b) => b[1] - a[1]).map(([name, count]) => `${name} ${number(count)}`).join(", ");

  function kinds() {
    const names = {1: "upright", 2: "mirrored", 3: "rotated by 180°", 4: "flipped vertically", 5: "transposed", 6: "rotated right by 90°", 7: "transverse", 8: "rotated left by 90°"};
    const channels = data.channels, list = (values) => "[" + values.map((value) => value.toFixed(4)).join(", ") + "]";
    const rows = [["formats", counts(data.formats)], ["colours", counts(data.modes)],
      ["orientation", counts(Object.fromEntries(Object.entries(data.orientations).map(([key, count]) => [names[key], count])))],
      ["mean", el("code", {}, list(channels.mean))], ["standard deviation", el("code", {}, list(channels.std))]];
    $("kinds").append(el("dl", {}, ...rows.flatMap(([key, value]) => [el("dt", {}, key), el("dd", {}, value)])));
    const colours = channels.mean.length === 3 ? [["red", "#d12f2f"], ["green", "#158a4a"], ["blue", "#2563eb"]] : [["grey", "var(--quiet)"]];
    $("kinds").append(el("div", {className: "channels"}, ...colours.flatMap(([name, colour], i) => {
      const from = Math.max(0, channels.mean[i] - channels.std[i]), to = Math.min(1, channels.mean[i] + channels.std[i]);
      return [el("span", {}, name), el("div", {className: "channel", title: `${name}: mean ${channels.mean[i].toFixed(4)}, standard deviation ${channels.std[i].toFixed(4)}`},
        el("i", {style: `left:${100 * from}%;width:${100 * (to - from)}%;background:${colour}`}), el("u", {style: `left:${100 * channels.mean[i]}%`}))];
    })));
    $("kinds").append(el("p", {className: "note"}, `Computed over all ${number(channels.pixels)} pixels with equal weight; values are 0 (black, left) to 1 (white, right). The bar covers one standard deviation on each side of the mean.`));
    $("kinds").hidden = !channels.mean.length;
  }

  function classes() {
    const most = Math.max(...data.classes.map((_, label) => Math.max(0, ...of_class(label))));
    const rows = data.classes.map((name, label) => el("tr", {}, el("td", {}, name), ...of_class(label).map((count) => {
      const cell = el("td", {className: "number share"}, number(count));
      cell.style.setProperty("--p", `${100 * count / most}%`);
      return cell;
    })));
    const made = table(["class", ...data.splits.map((split) => split.name)], rows);
    made.querySelectorAll("thead th:not(:first-child)").forEach((each) => each.classList.add("number"));
    $("classes").append(made);
  }

  const tiles = [[number(data.images), data.looked < data.images ? `images, ${number(data.looked)} inspected` : "images"], [number(data.classes.length), data.classes.length === 1 ? "class" : "classes"],
    ...data.splits.map((split) => [number(split.images), `in ${split.name}`]), [number(data.bad), "unreadable", data.bad > 0], [megabytes(data.bytes), "file size"]];
  $("tiles").append(...tiles.map(tile));
  $("subtitle").textContent = `${data.layout}; inspected in ${data.seconds.toFixed(1)} s; ${data.date.replace("T", " ").replace("Z", " UTC")}`;
  if (data.stopped) {
    $("state").textContent = "stopped early";
    $("state").classList.add("stopped");
  }
  $("findings").append(...data.findings.map(illustrated));
  $("findings").hidden = !data.findings.length;
  sheet();
  sizes();
  kinds();
  classes();
})();
