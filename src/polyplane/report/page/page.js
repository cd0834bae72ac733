"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);
  const made = (tag, text, name) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (name) element.className = name;
    return element;
  };
  const percent = (share) => share > 0.9995 && share < 1 ? "> 99.9%" : (100 * share).toFixed(share >= 0.1 ? 1 : 2) + "%";
  const signed = (value) => (value >= 0 ? "+" : "−") + Math.abs(value).toPrecision(3);

  // light and dark
  const root = document.documentElement;
  const theme = find("theme");
  const isDark = () =>
    root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
  const nameTheme = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
  };
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
    drawRegions();
  });
  nameTheme();

  // one machine in all charts
  const buttons = [...document.querySelectorAll("button[data-machine]")];
  const highlight = (name) => {
    buttons.forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.machine === name)));
    document.querySelectorAll("svg [data-of]").forEach((mark) => {
      mark.classList.toggle("faded", name !== null && mark.dataset.of !== name);
      mark.classList.toggle("hit", mark.dataset.of === name);
    });
  };
  buttons.forEach((button) =>
    button.addEventListener("click", () =>
      highlight(button.getAttribute("aria-pressed") === "true" ? null : button.dataset.machine)
    )
  );

  // regions
  const regions = data.regions;
  const colours = (k, n) => {
    const hue = n === 2 ? [186, 22][k] : Math.round((360 * k) / n + 186) % 360;
    return isDark()
      ? [`hsl(${hue} 38% 27%)`, `hsl(${hue} 70% 72%)`]
      : [`hsl(${hue} 48% 85%)`, `hsl(${hue} 75% 33%)`];
  };
  const unpacked = async (text) => {
    const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };
  let cells = null; // labels along all pairs of columns
  function drawRegions() {
    if (!cells) return;
    const x = Number(find("region-x").value), y = Number(find("region-y").value);
    const machine = find("region-machine").value;
    const said = find("region-said");
    const canvas = find("region"), pen = canvas.getContext("2d"), size = canvas.width;
    pen.clearRect(0, 0, size, size);
    if (x === y) {
      said.textContent = "Pick two different columns.";
      return;
    }
    const [a, b] = x < y ? [x, y] : [y, x];
    const pair = (a * (2 * regions.names.length - a - 1)) / 2 + b - a - 1;
    const n = regions.grid, cell = size / n;
    const first = (pair * regions.machines.length + regions.machines.indexOf(machine)) * n * n;
    const shades = regions.labels.map((_, k) => colours(k, regions.labels.length));
    const counts = regions.labels.map(() => 0);
    for (let line = 0; line < n; line++)
      for (let column = 0; column < n; column++) {
        const code = cells[first + (x < y ? line * n + column : column * n + line)];
        counts[code]++;
        pen.fillStyle = shades[code][0];
        pen.fillRect(column * cell, size - (line + 1) * cell, cell + 1, cell + 1);
      }
    const [left, right] = regions.ranges[x], [low, high] = regions.ranges[y];
    regions.dot_labels.forEach((label, k) => {
      const across = (regions.dots[x][k] - left) / (right - left);
      const up = (regions.dots[y][k] - low) / (high - low);
      if (across < 0 || across > 1 || up < 0 || up > 1) return;
      pen.beginPath();
      pen.arc(across * size, size - up * size, 5, 0, 7);
      pen.fillStyle = shades[label][1];
      pen.fill();
    });
    find("region-of").textContent = `What ${machine} predicts, and on how much of the area`;
    find("region-across").textContent = `${regions.names[x]}: ${regions.ends[x].join(" to ")}, left to right`;
    find("region-up").textContent = `${regions.names[y]}: ${regions.ends[y].join(" to ")}, bottom to top`;
    const legend = find("region-legend");
    legend.replaceChildren();
    regions.labels.forEach((label, k) => {
      const item = made("li"), swatch = made("i"), text = made("bdi", label);
      swatch.style.background = shades[k][0];
      swatch.style.borderColor = shades[k][1];
      item.append(swatch, text, ` ${percent(counts[k] / (n * n))}`);
      legend.append(item);
    });
    said.textContent = "";
    canvas.setAttribute("aria-label", `Labels that ${machine} gives along ${regions.names[x]} and ${regions.names[y]}: ` +
      regions.labels.map((label, k) => `${label} on ${percent(counts[k] / (n * n))}`).join(", "));
  }
  if (regions) {
    ["region-x", "region-y", "region-machine"].forEach((id) =>
      find(id).addEventListener("change", drawRegions)
    );
    unpacked(regions.cells).then(
      (found) => {
        cells = found;
        drawRegions();
      },
      () => (find("region-said").textContent = "This browser cannot unpack the regions: take a newer one.")
    );
  }

  // single rows
  const rows = data.rows ? data.rows.list : [];
  const select = find("row");
  const picture = (address, words, name) => {
    const image = made("img", undefined, name);
    image.src = address;
    image.alt = words;
    return image;
  };
  function showRow() {
    const row = rows[select.selectedIndex], panel = find("row-panel");
    panel.replaceChildren();
    const words = made("p");
    words.append("Labelled ", made("bdi", row.label), ", predicted ");
    const winner = made("strong");
    winner.append(made("bdi", row.winner));
    words.append(winner, row.is_wrong ? " (wrong)" : " (right)",
      row.chance === null ? "" : `, probability ${percent(row.chance)}`,
      "; the runner-up is ", made("bdi", row.runner_up), `, behind by ${row.lead.toPrecision(3)}.`);
    panel.append(words);
    if (row.planes[0] >= 0)
      panel.append(made("p", `Plane ${row.planes[0]} decided` +
        (row.planes[1] >= 0 ? `; the best of the runner-up is plane ${row.planes[1]}.` : "."), "quiet"));
    if (row.picture) {
      const pictures = made("div", undefined, "pictures");
      pictures.append(picture(row.picture, "The row as a picture", "pixels large"),
        picture(row.heat, "What each pixel gave: warm for the winner, cold for the runner-up", "pixels large"));
      panel.append(pictures);
    }
    const table = made("table"), head = made("thead"), body = made("tbody"), line = made("tr");
    table.append(made("caption", "What columns add to the lead, beside typical rows"), head, body);
    ["column", "value", "against or for", "adds"].forEach((word, k) => {
      const cell = made("th", word);
      cell.scope = "col";
      if (k === 2) cell.className = "left";
      line.append(cell);
    });
    head.append(line);
    const largest = Math.max(...row.columns.map((c) => Math.abs(c[2])), 1e-30);
    row.columns.forEach(([name, value, gives]) => {
      const item = made("tr"), title = made("th"), bar = made("td", undefined, "given"), span = made("span");
      title.scope = "row";
      title.append(made("bdi", name));
      span.className = gives > 0 ? "for" : "against";
      span.style.width = `${(50 * Math.abs(gives)) / largest}%`;
      bar.append(span);
      const cell = made("td");
      cell.append(made("bdi", value));
      item.append(title, cell, bar, made("td", signed(gives)));
      body.append(item);
    });
    const scroll = made("div", undefined, "scroll");
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "What columns add");
    scroll.append(table);
    panel.append(scroll, made("p", `All other columns add ${signed(row.rest)}. Before any column it is ${signed(row.base)}.`, "quiet"));
    const change = made("p");
    if (row.changes.length) {
      change.append("The prediction would change");
      row.changes.forEach(([name, value, label], k) => {
        change.append(k ? ", or " : " with ", made("bdi", name), ` = ${value} (to `, made("bdi", label), ")");
      });
      change.append(".");
    } else change.textContent = "No other value of a single one of the columns that matter most would change the prediction.";
    panel.append(change);
  }
  if (rows.length) {
    select.addEventListener("change", showRow);
    const move = (step) => {
      select.selectedIndex = (select.selectedIndex + step + rows.length) % rows.length;
      showRow();
    };
    find("row-before").addEventListener("click", () => move(-1));
    find("row-after").addEventListener("click", () => move(1));
    document.querySelectorAll("button[data-row]").forEach((button) =>
      button.addEventListener("click", () => {
        select.selectedIndex = Number(button.dataset.row);
        showRow();
        select.scrollIntoView({ block: "center" });
        select.focus();
      })
    );
    showRow();
  }

  // the code
  const copy = find("copy");
  if (copy)
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(find("code").textContent);
        copy.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(find("code"));
        copy.textContent = "Selected: press Ctrl-C";
      }
    });
})();
