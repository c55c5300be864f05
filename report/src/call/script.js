"use strict";
(() => {
  document.documentElement.classList.add("scripted");
  const pictures = JSON.parse(document.getElementById("pictures").textContent);
  const body = document.querySelector("#table tbody");
  const calls = [...body.rows];
  const search = document.getElementById("search");
  const ofClass = document.getElementById("class");
  const ofTumours = document.getElementById("tumours");
  const showFiltered = document.getElementById("show-filtered");
  const count = document.getElementById("count");

  const element = (tag, className, text) => {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  };

  // ---- Searching and sorting

  /** Numbers of the columns that are not always at the same place. */
  const columnOf = Object.fromEntries([...document.querySelectorAll("#table th[data-column]")].map((header) => [header.dataset.column, header.cellIndex]));

  const words = new Map(calls.map((row) => [row, row.textContent.toLowerCase()]));
  const places = new Map(calls.map((row) => {
    const [, chrom, at] = row.cells[1].textContent.match(/^(.*):([\d,]+)$/s);
    return [row, { chrom: chrom.toLowerCase(), at: Number(at.replaceAll(",", "")) }];
  }));

  /** What a search asks for: a stretch of a sequence, or words that must all occur. */
  function query(text) {
    const stretch = text.replaceAll(",", "").match(/^\s*(\S+):(\d+)(?:-(\d+))?\s*$/);
    if (stretch) {
      const [, chrom, from, to = from] = stretch;
      return (row) => {
        const place = places.get(row);
        return place.chrom === chrom && place.at >= Number(from) && place.at <= Number(to);
      };
    }
    const asked = text.split(/\s+/).filter(Boolean);
    return (row) => asked.every((word) => words.get(row).includes(word));
  }

  /** Whether the tumours that have a call are those asked for. */
  function inTumours(row) {
    const asked = ofTumours ? ofTumours.value : "";
    if (asked === "") return true;
    const has = row.dataset.has;
    const many = [...has].filter((one) => one === "1").length;
    if (asked === "shared") return many > 1;
    if (asked === "private") return many === 1;
    if (asked === "all") return many === has.length;
    return has[Number(asked)] === "1";
  }

  // ---- Pages

  const ROWS_OF_PAGE = 100;
  const pages = document.querySelector(".pages");
  const previous = document.getElementById("previous");
  const next = document.getElementById("next");
  const pageText = document.getElementById("page");
  /** Calls that fit the search, in the order of the table, and the number of the page that is shown. */
  let fitting = [];
  let page = 0;

  function showPage() {
    const last = Math.max(0, Math.ceil(fitting.length / ROWS_OF_PAGE) - 1);
    page = Math.min(Math.max(page, 0), last);
    const from = page * ROWS_OF_PAGE;
    const shown = new Set(fitting.slice(from, from + ROWS_OF_PAGE));
    for (const row of calls) {
      row.hidden = !shown.has(row);
      const detail = detailOf(row);
      if (detail) detail.hidden = row.hidden;
    }
    pages.hidden = last === 0;
    previous.disabled = page === 0;
    next.disabled = page === last;
    const number = (n) => n.toLocaleString("en");
    pageText.textContent = `${number(from + 1)} to ${number(from + shown.size)} of ${number(fitting.length)}`;
    count.textContent = `${number(fitting.length)} of ${number(calls.length)} calls shown`;
    if (last > 0) count.textContent += `, ${ROWS_OF_PAGE} on a page`;
  }

  /** Shows the first page of the calls that fit the search. */
  function select() {
    const fits = query(search.value.toLowerCase());
    fitting = calls.filter((row) => fits(row) && inTumours(row)
      && (ofClass.value === "" || row.cells[2].textContent === ofClass.value)
      && (showFiltered.checked || !row.classList.contains("filtered")));
    page = 0;
    showPage();
  }

  function turn(by) {
    page += by;
    showPage();
    document.getElementById("calls").scrollIntoView();
  }
  previous.addEventListener("click", () => turn(-1));
  next.addEventListener("click", () => turn(1));

  const headers = [...document.querySelectorAll("#table th[data-sort]")];
  function sort(header) {
    const column = header.cellIndex;
    const number = header.dataset.sort === "number";
    // Numbers are most wanted from the top, places and words from the start.
    const first = number && column > 1 ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const direction = header.getAttribute("aria-sort") === first ? other : first;
    for (const h of headers) h.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", direction);
    const sign = direction === "ascending" ? 1 : -1;
    const key = (row) => {
      const cell = row.cells[column];
      return number ? Number(cell.dataset.v) : cell.textContent;
    };
    const keys = new Map(calls.map((row) => [row, key(row)]));
    const compare = number ? (a, b) => a - b : (a, b) => (a < b ? -1 : Number(a > b));
    calls.sort((a, b) => sign * compare(keys.get(a), keys.get(b)) || a.dataset.n - b.dataset.n);
    for (const row of calls) {
      const detail = detailOf(row);
      body.append(row);
      if (detail) body.append(detail);
    }
    select();
  }
  for (const header of headers) {
    const button = element("button", "", header.textContent);
    button.type = "button";
    button.addEventListener("click", () => sort(header));
    header.replaceChildren(button);
  }

  // ---- Reads side by side

  const unpacked = (cells) => cells.replace(/\d+/g, (n) => ".".repeat(Number(n)));

  /** Letters with a style each, as few elements as possible. */
  function letters(line, cells) {
    let run = null;
    for (const [letter, style] of cells) {
      const fixed = letter === "…";
      if (run && run.style === style && !fixed && !run.fixed) {
        run.text += letter;
      } else {
        if (run) line.append(run.style || run.fixed ? element("i", run.style, run.text) : run.text);
        run = { text: letter, style: fixed ? `${style} cell`.trim() : style, fixed };
      }
    }
    if (run) line.append(run.style ? element("i", run.style, run.text) : run.text);
  }

  /** Style of an allele's letter in the change; where the tumour lost bases it is lighter. */
  const inChange = (letter, style) => (letter === "-" && style === "is-t" ? "gap-t" : style);

  function alleleLine(name, own, other, style) {
    const line = element("div", "line allele");
    const cells = element("span");
    line.append(element("span", "gutter", name), cells);
    letters(cells, own.map((letter, c) => [letter, letter === other[c] ? "" : inChange(letter, style)]));
    return line;
  }

  /** A read. In the change it shows its allele's letters; elsewhere a dot where it agrees. */
  function readLine(picture, [flags, from, cells]) {
    const [normal, tumour, changeFrom, changeTo] = picture;
    const carries = ((flags >> 1) & 3) === 2;
    const own = carries ? tumour : normal;
    const line = element("div", flags & 16 ? "line read copy" : "line read");
    const gutter = element("span", "gutter", flags & 8 ? "→" : "←");
    gutter.title = (flags & 8 ? "forward on the contig" : "reverse on the contig") + (flags & 16 ? "; duplicate, not counted" : "");
    const box = element("span");
    box.style.marginLeft = `${from}ch`;
    line.append(gutter, box);
    letters(box, [...unpacked(cells)].map((cell, i) => {
      const c = from + i;
      const changed = c >= changeFrom && c < changeTo && normal[c] !== tumour[c];
      if (cell === "." || cell === "-" || cell === "…") {
        const letter = cell === "." ? own[c] : cell;
        if (changed) return [letter, inChange(letter, carries ? "is-t" : "is-n")];
        return [cell === "." ? "·" : cell, ""];
      }
      return [cell, cell];
    }));
    return line;
  }

  const GROUPS = ["Unclear", "With the normal’s allele", "With the change"];

  const several = [...document.querySelectorAll("#table .tumour-column")].map((header) => header.textContent);

  /** One sample by its number, the normal's 0. `pairs`: numbers of read pairs that support neither allele (unknown), the normal's, the tumour's; `copies`: duplicates left out. */
  function side(picture, sample, pairs, copies) {
    const heading = sample ? several[sample - 1] || "Tumour" : "Normal";
    const support = `${pairs[2].toLocaleString("en")} of ${(pairs[1] + pairs[2]).toLocaleString("en")} read pairs have the change`
      + (copies ? `; ${copies} ${copies === 1 ? "duplicate" : "duplicates"} left out` : "");
    const [normalText, tumourText, from, to, rows] = picture;
    const box = element("section", `side ${sample ? "tumour" : "normal"}`);
    const title = element("h4", "", heading);
    title.append(" ", element("span", "", support));
    const scroll = element("div", "scroll");
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", `${heading} reads`);
    const reads = element("div", "reads");
    reads.style.setProperty("--from", from);
    reads.style.setProperty("--to", to);
    reads.style.setProperty("--columns", normalText.length);
    reads.append(element("div", "band"));
    const [normal, tumour] = [[...normalText], [...tumourText]];
    reads.append(alleleLine("normal", normal, tumour, "is-n"), alleleLine("tumour", tumour, normal, "is-t"));
    const whole = [normal, tumour, from, to];
    const mine = rows.filter((row) => (row[0] & 1 ? 1 + (row[0] >> 5) : 0) === sample);
    for (const allele of [2, 1, 0]) {
      const group = mine.filter((row) => ((row[0] >> 1) & 3) === allele);
      if (group.length === 0) continue;
      const line = element("div", "line group");
      const counted = group.filter((row) => !(row[0] & 16)).length;
      const number = counted < pairs[allele] ? `${group.length} of ${pairs[allele]} reads` : `${group.length} ${group.length === 1 ? "read" : "reads"}`;
      line.append(element("span", "gutter", `${GROUPS[allele]}: ${number}`));
      reads.append(line, ...group.map((row) => readLine(whole, row)));
    }
    if (mine.length === 0) reads.append(element("div", "line group", "  no informative reads"));
    scroll.append(reads);
    box.append(title, scroll);
    return box;
  }

  function key() {
    const box = element("div", "key");
    const entry = (style, sample, text) => {
      const item = element("span");
      const reads = element("span", "reads");
      const read = element("span", "read");
      read.append(element("i", style, sample));
      reads.append(read);
      item.append(reads, text);
      box.append(item);
    };
    entry("is-t", "A", "the tumour’s allele");
    entry("is-n", "A", "the normal’s allele");
    entry("", "···", "agrees with its allele");
    entry("T", "T", "differs from it: an error, or a germline variant");
    entry("", "→ ←", "forward or reverse on the contig");
    box.append(element("span", "", "Faded: duplicate, not counted"));
    return box;
  }

  const detailOf = (row) => (row.classList.contains("opened") ? row.nextElementSibling : null);

  function open(row) {
    if (detailOf(row)) return;
    const detail = element("tr", "detail");
    const cell = element("td");
    cell.colSpan = row.cells.length;
    const id = row.cells[columnOf.id];
    const facts = element("div", "facts");
    const fact = (name, value) => {
      const item = element("span", "", `${name} `);
      item.append(element("b", "", value));
      facts.append(item);
    };
    fact("Contig", id.dataset.contig);
    const title = row.cells[3].querySelector("[title]");
    if (title && title.title.length <= 120) fact("REF > ALT", title.title);
    for (const field of row.querySelectorAll(".known > span")) {
      const [name, ...value] = field.title.split("=");
      fact(name, value.join("="));
    }
    for (const filter of row.cells[columnOf.filter].querySelectorAll(".filter")) fact("Filtered:", filter.title || filter.textContent);
    const box = element("div", "box");
    box.append(facts);
    const picture = pictures[row.dataset.n];
    if (picture) {
      const copies = id.dataset.copies.split(" ").map(Number);
      const pairs = (column) => {
        const [alternative, all] = row.cells[column].querySelector("[data-pairs]").dataset.pairs.split(" ").map(Number);
        return [0, all - alternative, alternative];
      };
      const sides = element("div", "sides");
      sides.append(side(picture, 0, pairs(columnOf.normal), copies[0]));
      if (several.length === 0) sides.append(side(picture, 1, pairs(columnOf.tumour), copies[1]));
      several.forEach((_, t) => {
        sides.append(side(picture, t + 1, pairs(columnOf.id + 1 + t), copies[t + 2]));
      });
      box.append(sides, key());
    } else {
      box.append(element("p", "note", "The report has no picture of this call."));
    }
    cell.append(box);
    detail.append(cell);
    row.after(detail);
    row.classList.add("opened");
    row.querySelector(".open").setAttribute("aria-expanded", "true");
    centre(detail);
  }

  /** Scrolls both sides so that the change stands in the middle, and keeps them together. */
  function centre(detail) {
    const boxes = [...detail.querySelectorAll(".scroll")];
    for (const box of boxes) {
      const band = box.querySelector(".band");
      const gutter = box.querySelector(".gutter").getBoundingClientRect().width;
      const letter = gutter / 7;
      const off = band.offsetLeft + band.offsetWidth / 2 - (box.clientWidth + gutter) / 2;
      box.scrollLeft = Math.round(off / letter) * letter;
      box.addEventListener("scroll", () => {
        for (const other of boxes) if (other !== box) other.scrollLeft = box.scrollLeft;
      });
    }
  }

  function close(row) {
    const detail = detailOf(row);
    if (detail) detail.remove();
    row.classList.remove("opened");
    row.querySelector(".open").setAttribute("aria-expanded", "false");
  }

  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr.call");
    if (!row || String(window.getSelection()) !== "") return;
    if (row.classList.contains("opened")) close(row);
    else {
      open(row);
      try { history.replaceState(null, "", `#${encodeURIComponent(row.id)}`); } catch { /* a page without an address */ }
    }
  });

  function follow() {
    let id = location.hash.slice(1);
    try { id = decodeURIComponent(id); } catch { /* taken as it stands */ }
    const row = document.getElementById(id);
    if (!row || !row.classList.contains("call")) return;
    if (row.classList.contains("filtered")) showFiltered.checked = true;
    search.value = "";
    ofClass.value = "";
    if (ofTumours) ofTumours.value = "";
    select();
    page = Math.floor(fitting.indexOf(row) / ROWS_OF_PAGE);
    showPage();
    open(row);
    row.scrollIntoView();
  }

  search.addEventListener("input", select);
  ofClass.addEventListener("change", select);
  if (ofTumours) ofTumours.addEventListener("change", select);
  showFiltered.addEventListener("change", select);
  document.querySelector(".controls").addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", follow);
  select();
  follow();
})();
