"use strict";
(() => {
  const FIRST = 25, MORE = 200;

  // Returns the data of the page, which is JSON, deflated, in base64.
  async function unpacked() {
    const text = atob(document.getElementById("rows").textContent);
    const octets = Uint8Array.from(text, (c) => c.charCodeAt(0));
    const stream = new Blob([octets]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).json();
  }

  // Makes an element. Strings are appended as text, so text from the network is never parsed as HTML.
  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes ?? {})) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  const number = (value) => value.toLocaleString("en-US");
  function duration(secs) {
    for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]]) {
      if (secs >= 2 * size) return `${Math.round(secs / size)} ${unit}`;
    }
    return `${Math.round(secs)} s`;
  }
  function time(secs) {
    const date = new Date(secs * 1000);
    return Number.isNaN(date.getTime()) ? "" : date.toISOString().slice(0, 16).replace("T", " ");
  }
  function shown(value, kind) {
    if (value === null || value === "") return "";
    if (kind === "number") return number(value);
    if (kind === "time") return time(value);
    if (kind === "secs") return duration(value);
    if (kind === "severity") return ["", "note", "warning", "error"][value];
    if (kind === "bytes") return value < 10000 ? `${number(value)} B` : `${number(Math.round(value / 1000))} kB`;
    return String(value);
  }

  // The state of the page is in the fragment of the URL: sites.q=words&sites.s=-2&site=http://a.example
  const fragment = () => new URLSearchParams(/=/.test(location.hash) ? location.hash.slice(1) : "");
  function remember(changes, step) {
    const state = fragment();
    for (const [key, value] of Object.entries(changes)) {
      if (value) state.set(key, value); else state.delete(key);
    }
    const url = `#${state}`;
    if (step) history.pushState(null, "", url); else history.replaceState(null, "", url);
  }

  class Table {
    constructor(section, data) {
      Object.assign(this, data, { section, name: section.dataset.name, most: FIRST, words: "", texts_: [] });
      this.size = this.values[0].length;
      this.body = section.querySelector("tbody");
      this.order = this.all = Array.from({ length: this.size }, (_, i) => i);
      this.descending = this.isNumeric(this.sort);
      this.sorted = null;
      this.head();
      this.tools();
    }
    isNumeric(column) { return !["text", "site"].includes(this.kinds[column]); }
    head() {
      this.heads_ = [...this.section.querySelectorAll("thead th")];
      this.heads_.forEach((th, column) => {
        const button = element("button", { type: "button", onclick: () => this.sortBy(column) }, th.textContent);
        th.replaceChildren(button);
      });
    }
    tools() {
      this.input = element("input", { type: "search", id: `q-${this.name}`, autocomplete: "off", spellcheck: "false",
        oninput: () => { this.filter(this.input.value); this.keep(); } });
      this.told = element("span", { role: "status" });
      this.more = element("button", { type: "button", onclick: () => { this.most += MORE; this.show(); } }, "Show more");
      const save = element("button", { type: "button", onclick: () => this.save() }, "Export CSV");
      const label = element("label", { for: this.input.id }, "Filter", this.input);
      this.section.querySelector(".scroll").before(element("div", { class: "tools" }, label, this.told, save));
      this.section.append(element("div", { class: "tools" }, this.more));
    }
    sortBy(column) {
      this.descending = this.sort === column ? !this.descending : this.isNumeric(column);
      this.sort = column;
      this.apply();
      this.keep();
    }
    keep() {
      remember({ [`${this.name}.q`]: this.words, [`${this.name}.s`]: `${this.descending ? "-" : ""}${this.sort}` });
    }
    restore(state) {
      const sort = state.get(`${this.name}.s`);
      if (/^-?\d{1,2}$/.test(sort ?? "") && Math.abs(sort) < this.heads.length) {
        this.sort = Math.abs(sort);
        this.descending = sort.startsWith("-");
      }
      this.words = state.get(`${this.name}.q`) ?? "";
      this.input.value = this.words;
      this.apply();
    }
    filter(words) {
      this.words = words;
      this.apply();
    }
    apply() {
      const key = `${this.sort}${this.descending}`;
      if (this.sorted !== key) { this.all = this.inOrder(); this.sorted = key; }
      const words = this.words.toLowerCase().split(/\s+/).filter(Boolean);
      const texts = words.length ? this.texts() : null;
      this.order = texts ? this.all.filter((i) => words.every((word) => texts[i].includes(word))) : this.all;
      this.most = FIRST;
      this.show();
    }
    // Makes the texts that the filter searches, until a given time, while the browser is idle.
    prepare(until) {
      while (this.texts_.length < this.size) {
        const end = Math.min(this.texts_.length + 500, this.size);
        for (let i = this.texts_.length; i < end; i++) {
          let text = "";
          this.values.forEach((column, n) => {
            const value = column[i];
            if (value !== null && value !== "") text += ` ${["time", "severity"].includes(this.kinds[n]) ? shown(value, this.kinds[n]) : value}`;
          });
          this.texts_.push(text.toLowerCase());
        }
        if (performance.now() > until) return this.texts_.length === this.size;
      }
      return true;
    }
    texts() {
      this.prepare(Infinity);
      return this.texts_;
    }
    inOrder() {
      const column = this.values[this.sort], sign = this.descending ? -1 : 1;
      const order = Array.from({ length: this.size }, (_, i) => i);
      const empty = (value) => value === null || value === "";
      const compare = this.isNumeric(this.sort)
        ? (a, b) => a - b
        : (a, b) => (a < b ? -1 : a > b ? 1 : 0);
      return order.sort((i, j) => {
        const a = column[i], b = column[j];
        if (empty(a) || empty(b)) return empty(a) - empty(b) || i - j;
        return sign * compare(a, b) || i - j;
      });
    }
    // Returns the matching rows in order. A spreadsheet would run text that begins with = as a formula.
    csv() {
      const cell = (value, n) => {
        let text = value === null ? "" : ["time", "severity"].includes(this.kinds[n]) ? shown(value, this.kinds[n]) : String(value);
        if (typeof value === "string" && /^[=+@\t\r-]/.test(text)) text = `'${text}`;
        return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
      };
      const lines = this.order.map((i) => this.values.map((column, n) => cell(column[i], n)).join(","));
      return [this.heads.map((head) => cell(head)).join(","), ...lines, ""].join("\r\n");
    }
    save() {
      const href = URL.createObjectURL(new Blob([this.csv()], { type: "text/csv" }));
      element("a", { href, download: `${this.name}.csv` }).click();
      setTimeout(() => URL.revokeObjectURL(href), 10000);
    }
    show() {
      this.heads_.forEach((th, column) => {
        if (column === this.sort) th.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
        else th.removeAttribute("aria-sort");
        const mark = column !== this.sort ? "" : this.descending ? " \u25bc" : " \u25b2";
        th.firstChild.textContent = this.heads[column] + mark;
      });
      this.body.replaceChildren(...this.order.slice(0, this.most).map((i) => this.row(i)));
      const seen = Math.min(this.most, this.order.length);
      this.told.textContent = this.words
        ? `${number(this.order.length)} of ${number(this.size)} rows match, ${number(seen)} shown`
        : `${number(seen)} of ${number(this.size)} rows shown`;
      this.more.hidden = seen === this.order.length;
    }
    row(i) {
      return element("tr", {}, ...this.values.map((column, n) => {
        const kind = this.kinds[n], text = shown(column[i], kind);
        return element("td", { class: this.keys[n] }, kind === "site" ? siteLink(text) : text);
      }));
    }
  }

  function siteLink(site) {
    const href = `#${new URLSearchParams({ site })}`;
    return element("a", { href, onclick: (event) => { event.preventDefault(); remember({ site }, true); open_(site); } }, site);
  }

  // The dialog with the details of a site.
  const dialog = document.getElementById("detail");
  let data = null;

  function facts(site) {
    const { heads, kinds, values } = data.tables.sites;
    const at = values[0].indexOf(site);
    const list = element("dl", { class: "facts" });
    if (at >= 0) heads.forEach((head, n) => {
      const text = n ? shown(values[n][at], kinds[n]) : "";
      if (text) list.append(element("div", {}, element("dt", {}, head), element("dd", {}, text)));
    });
    return list;
  }
  function refusals(site) {
    const rules = data.tables.rules?.values;
    const found = [];
    if (rules) rules[1].forEach((name, i) => {
      if (name === site) found.push({ refused: rules[0][i], line: rules[2][i], text: rules[3][i] });
    });
    return found.sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
  }
  function command(url) {
    const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
    const words = `scrapy robots explain ${quoted(url)} -s ROBOTSTXT_USER_AGENT=${quoted(data.robot)}`;
    const told = element("span", { role: "status" });
    const copy = async () => {
      try { await navigator.clipboard.writeText(words); told.textContent = "Copied"; } catch {
        getSelection().selectAllChildren(code);
        told.textContent = "Press Ctrl+C to copy";
      }
    };
    const code = element("code", {}, words);
    return element("div", { class: "command" }, code, element("button", { type: "button", onclick: copy }, "Copy"), told);
  }
  function fileTable(file, refused) {
    const by = new Map(refused.map((rule) => [rule.line, rule.refused]));
    const lit = new Set(file.lit);
    const body = element("tbody", {});
    file.texts.forEach((text, i) => {
      const line = i + 1;
      const kind = by.has(line) && file.same ? "refusing" : lit.has(line) ? "lit" : null;
      body.append(element("tr", { class: kind },
        element("td", { class: "n" }, String(line)),
        element("td", { class: "n" }, by.has(line) && file.same ? number(by.get(line)) : ""),
        element("td", {}, lit.has(line) ? "|" : ""),
        element("td", {}, text)));
    });
    const head = element("tr", {}, ...["line", "refused", "obeyed", "text"].map((text) => element("th", { scope: "col" }, text)));
    return element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "The stored file" },
      element("table", { class: "file" }, element("thead", {}, head), body));
  }
  function ruleList(refused) {
    const body = refused.map((rule) => element("tr", {},
      element("td", { class: "number" }, number(rule.refused)),
      element("td", { class: "number" }, rule.line === null ? "" : String(rule.line)),
      element("td", { class: "text" }, rule.text)));
    const head = element("tr", {}, ...["refused", "line", "text"].map((text) => element("th", { scope: "col" }, text)));
    return element("table", { class: "small" }, element("thead", {}, head), element("tbody", {}, ...body));
  }
  const KINDS = {
    rule: (line) => (line ? `Refused by line ${line}` : "Refused"),
    delay: (line) => (line ? `Refused: Crawl-delay too long (line ${line})` : "Refused: Crawl-delay too long"),
    usage: (line) => (line ? `Refused by the usage preference in line ${line}` : "Refused by a usage preference"),
    override: () => "Refused by your override",
    restricted: () => "Refused: HTTP 401 or 403",
    missing: () => "Refused: no robots.txt (KOSTER_MISSING)",
    html: () => "Refused: HTML page as robots.txt (KOSTER_HTML_ROBOTSTXT)",
    unavailable: () => "Refused: robots.txt unavailable",
    start: () => "Refused start requests",
    overridden: () => "Allowed by your override",
    exempt_forbidden: () => "Forbidden, but exempt (dont_obey_robotstxt)",
    hazard: (line) => `Allowed, but RFC 9309 forbids it (line ${line})`,
    nofollow: () => "Pages with nofollow",
    noindex: () => "Pages with noindex",
    usage_dropped: () => "Pages whose items were dropped by a usage preference",
  };
  function open_(site) {
    const file = Object.hasOwn(data.files, site) ? data.files[site] : null;
    const kinds = Object.keys(KINDS);
    const samples = Object.hasOwn(data.samples, site) ? [...data.samples[site]] : [];
    samples.sort((a, b) => kinds.indexOf(a[0]) - kinds.indexOf(b[0]) || a[1] - b[1]);
    const urls = new Map();
    for (const [kind, line, url] of samples) {
      const title = KINDS[kind](line);
      urls.set(title, [...(urls.get(title) ?? []), url]);
    }
    const refused = refusals(site);
    document.getElementById("detail-title").textContent = site;
    const parts = [facts(site), element("h3", {}, "Explain a URL"), command(samples[0]?.[2] ?? `${site}/`)];
    if (refused.length) parts.push(element("h3", {}, "Lines that refused requests"), ruleList(refused));
    for (const [title, found] of urls) {
      parts.push(element("h3", {}, title), element("ul", { class: "samples" }, ...found.map((url) => element("li", {}, url))));
    }
    if (file) {
      parts.push(element("h3", {}, "The stored file"));
      if (file.digest) parts.push(element("p", {}, `Digest: ${file.digest}`));
      if (!file.same) parts.push(element("p", {}, "This file has changed since the crawl obeyed it, so its lines have no counts."));
      if (file.findings.length) parts.push(element("ul", {}, ...file.findings.map(([code, title, grave]) => element("li", {}, `${shown(grave, "severity")} ${code}: ${title}`))));
      parts.push(fileTable(file, refused));
    } else {
      parts.push(element("p", {}, `This page does not include the stored file. To see it: scrapy robots cache show '${site}'`));
    }
    document.getElementById("detail-body").replaceChildren(...parts);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  }
  dialog.addEventListener("close", () => remember({ site: "" }));

  function restore() {
    const state = fragment();
    tables.forEach((table) => table.restore(state));
    const site = state.get("site");
    if (site) open_(site); else if (dialog.open) dialog.close();
  }

  let tables = [];
  async function begin() {
    data = await unpacked();
    tables = [...document.querySelectorAll("section.data")].map((section) => new Table(section, data.tables[section.dataset.name]));
    restore();
    addEventListener("hashchange", () => { if (/=/.test(location.hash)) restore(); });
    addEventListener("popstate", () => { if (/=/.test(location.hash) || dialog.open) restore(); });
    document.documentElement.dataset.ready = "yes";
    const prepare = (idle) => {
      const until = performance.now() + idle.timeRemaining();
      if (!tables.every((table) => table.prepare(until))) requestIdleCallback(prepare);
    };
    requestIdleCallback(prepare);
  }
  begin();
})();
