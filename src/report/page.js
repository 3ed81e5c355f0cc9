"use strict";
(() => {
  const make = (tag, properties, ...children) => {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  };

  // Tables: a heading is a button that sorts; the ranking has a filter.
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    const raw = cell.dataset.v;
    return raw === undefined ? cell.textContent : Number(raw);
  };
  const before = (a, b) => {
    if (a === b) return 0;
    if (a === "" || b === "") return a === "" ? 1 : -1;
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", {numeric: true});
  };
  const sortBy = (table, heading, column) => {
    const down = heading.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => before(valueOf(a, column), valueOf(b, column)) * (down ? -1 : 1));
    table.tBodies[0].append(...rows);
  };
  for (const table of document.querySelectorAll("table")) {
    if (!table.tHead || table.tBodies[0].rows.length < 3) continue;
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      if (heading.tagName !== "TH" || heading.textContent.trim() === "") return;
      const button = make("button", {type: "button"}, ...heading.childNodes);
      button.addEventListener("click", () => sortBy(table, heading, column));
      heading.append(button);
    });
  }
  for (const table of document.querySelectorAll("table.ranked")) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 3) continue;
    const input = make("input", {type: "search", autocomplete: "off"});
    const count = make("span", {className: "dim"});
    count.setAttribute("role", "status");
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = [...row.cells].map(cell => cell.textContent).join(" ").toLowerCase();
        row.hidden = !words.every(word => text.includes(word));
        if (!row.hidden) ++shown;
      }
      count.textContent = `${shown} of ${rows.length} rows`;
    });
    table.parentNode.before(make("div", {className: "filter"}, make("label", {}, "Rows with ", input), count));
  }

  // Pictures. Expressions are interpreted ("ast"): the policy of this page lets no text become code.
  const data = document.getElementById("charts");
  if (!data || typeof vegaEmbed === "undefined") return;
  const {config, charts} = JSON.parse(data.textContent);

  // Two limits of a front: by a slider each, or by dragging their lines.
  const addLimits = (place, view, limits, values) => {
    const says = make("output", {});
    const all = values.filter(row => row.m);
    const tell = () => {
      const x = view.signal("limit_x"), y = view.signal("limit_y");
      const left = all.filter(row => limits.at_least ? row.x >= x && row.y >= y : row.x <= x && row.y <= y);
      const name = row => (row.n ? row.n + ": " : "") + row.xt + ", " + row.yt;
      says.textContent = `${left.length} of ${all.length} are left` + (left.length === 1 ? `: ${name(left[0])}` : "");
    };
    const box = make("div", {className: "limits"});
    const lines = [];
    // The nearer line is taken, from a finger's width.
    place.addEventListener("pointerdown", event => {
      const line = lines.map(one => [one.distance(event), one.move]).sort((a, b) => a[0] - b[0])[0];
      if (!event.target.closest("svg.marks") || line[0] > 10) return;
      event.preventDefault();
      const end = () => {
        removeEventListener("pointermove", line[1]);
        removeEventListener("pointerup", end);
      };
      addEventListener("pointermove", line[1]);
      addEventListener("pointerup", end);
    });
    for (const axis of ["x", "y"]) {
      const {title, unit, least, most, log} = limits[axis];
      const [low, high] = log ? [Math.log(least), Math.log(most)] : [least, most];
      const slider = make("input", {type: "range", min: 0, max: 1000, step: 1, value: limits.at_least ? 0 : 1000});
      const shown = make("span", {});
      const set = value => {
        view.signal(`limit_${axis}`, value).run();
        shown.textContent = inUnit(value, unit);
        slider.setAttribute("aria-valuetext", shown.textContent);
        tell();
      };
      slider.addEventListener("input", () => {
        const part = Number(slider.value) / 1000, at = low + (high - low) * part;
        set(part === 0 ? least : part === 1 ? most : log ? Math.exp(at) : at);
      });
      box.append(make("label", {}, `${title} of at ${limits.at_least ? "least" : "most"} `, slider), shown);
      const origin = () => view.origin()[axis === "x" ? 0 : 1];
      const pixelOf = event => {
        const area = place.querySelector("svg").getBoundingClientRect();
        return (axis === "x" ? event.clientX - area.left : event.clientY - area.top) - origin();
      };
      const move = event => {
        const value = Math.min(most, Math.max(least, view.scale(axis).invert(pixelOf(event))));
        slider.value = 1000 * ((log ? Math.log(value) : value) - low) / ((high - low) || 1);
        set(value);
      };
      lines.push({
        distance: event => Math.abs(pixelOf(event) - view.scale(axis)(view.signal(`limit_${axis}`))),
        move,
      });
      set(limits.at_least ? least : most);
    }
    box.append(says);
    place.after(box);
  };

  const inUnit = (value, unit) => {
    const number = Number(value.toPrecision(3)).toLocaleString("en");
    return unit.startsWith("$") ? "$" + number + unit.slice(1) : `${number} ${unit}`.trim();
  };
  const draw = async (spec, i) => {
    const place = document.getElementById(`chart-${i}`);
    const narrow = place.clientWidth < 520;
    const room = place.clientWidth;
    const {own_width = false} = spec.usermeta || {};
    const own = {...config,
      axisY: {labelLimit: narrow ? Math.round(room * 0.36) : 320, ...(config.axisY || {})},
      legend: {...config.legend, disable: narrow && !own_width, columns: room > 900 ? 3 : room > 600 ? 2 : 1, labelLimit: Math.max(200, room > 600 ? room / 2 : room - 60)}};
    // Beside its axis a key has no room on a phone: there it stands below the picture.
    const colours = (spec.layer || []).map(layer => (layer.encoding || {}).color).find(color => color && color.legend !== null);
    if (narrow && colours) {
      const swatch = colour => {
        const box = make("span", {className: "swatch"});
        box.style.background = colour;
        return box;
      };
      const {domain, range} = colours.scale;
      place.after(make("ul", {className: "legend"}, ...domain.map((name, k) => make("li", {}, swatch(range[k]), name))));
    }
    const result = await vegaEmbed(place, spec, {
      mode: "vega-lite", renderer: "svg", ast: true, config: own,
      actions: {export: true, source: false, compiled: false, editor: false},
      tooltip: {theme: "custom"},
    });
    const menu = place.querySelector("summary");
    if (menu) menu.setAttribute("aria-label", "Save this picture");
    const svg = place.querySelector("svg.marks");
    if (svg) {
      svg.setAttribute("role", "img");
      svg.setAttribute("aria-label", place.parentNode.querySelector("h2").textContent + "; its numbers are below");
    }
    if (place.scrollWidth > place.clientWidth) {
      place.tabIndex = 0;
      place.setAttribute("role", "region");
      place.setAttribute("aria-label", place.parentNode.querySelector("h2").textContent);
    }
    const limits = (spec.usermeta || {}).limits;
    if (limits) addLimits(place, result.view, limits, spec.data.values);
    return result;
  };
  Promise.all(charts.map(draw)).then(
    results => { document.body.dataset.drawn = results.length; },
    error => {
      document.body.dataset.failed = String(error);
      console.error(error);
    });
})();
