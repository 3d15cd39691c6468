// Tables that sort and filter. The state of one table is kept in the address, as in
// #topics?sort=-leaders&filter=orders: a minus sorts from the greatest down. A column of few values
// has a choice of its own, as in #topics?owner=payments.
(() => {
  "use strict";
  const order = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  function readValue(cell, numeric) {
    const said = cell.dataset.v ?? cell.textContent.trim();
    if (!numeric) return said;
    const number = Number.parseFloat(said.replaceAll(",", ""));
    return Number.isNaN(number) ? null : number;
  }

  // What holds no number comes last, whichever way the others go.
  function compareBy(column, numeric, sign) {
    return (a, b) => {
      const [x, y] = [a, b].map((row) => readValue(row.cells[column], numeric));
      if (x === null || y === null) return (x === null) - (y === null);
      return sign * (numeric ? x - y : order.compare(x, y));
    };
  }

  class SortableTable {
    constructor(table) {
      this.table = table;
      this.body = table.tBodies[0];
      this.heads = [...table.tHead.rows[0].cells];
      this.rows = [...this.body.rows];
      this.texts = this.rows.map((row) => row.textContent.toLowerCase());
      this.sort = "";
      this.choices = new Map();
      this.heads.forEach((head) => this.addButton(head));
      this.addTools();
    }

    addButton(head) {
      const title = head.querySelector("span");
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = title.textContent;
      button.addEventListener("click", () => this.turn(head));
      title.replaceChildren(button);
    }

    addTools() {
      const title = document.getElementById(`${this.table.id}-title`).textContent;
      const tools = document.createElement("div");
      tools.className = "tools";
      this.input = document.createElement("input");
      this.input.type = "search";
      this.input.placeholder = "Filter: every word must be there";
      this.input.setAttribute("aria-label", `Filter: ${title}`);
      this.input.addEventListener("input", () => this.filterBy(this.input.value, true));
      this.says = document.createElement("output");
      tools.append(this.input);
      this.heads.forEach((head, column) => {
        if ("choices" in head.dataset) this.addChoice(tools, head, column);
      });
      tools.append(this.says);
      this.table.parentElement.before(tools);
      this.filterBy("", false);
    }

    addChoice(tools, head, column) {
      const values = new Set(this.rows.map((row) => row.cells[column].textContent.trim()));
      if (values.size < 2) return;
      const title = head.textContent;
      const choice = document.createElement("select");
      choice.setAttribute("aria-label", title);
      choice.append(new Option(`${title}: all`, ""));
      [...values].sort(order.compare).forEach((value) => choice.append(new Option(value, value)));
      choice.addEventListener("change", () => this.filterBy(this.input.value, true));
      this.choices.set(head.dataset.key, { choice, column });
      tools.append(choice);
    }

    isChosen(row) {
      return [...this.choices.values()].every(({ choice, column }) =>
        choice.value === "" || row.cells[column].textContent.trim() === choice.value);
    }

    turn(head) {
      const key = head.dataset.key;
      const first = "numeric" in head.dataset ? `-${key}` : key;
      const second = first === key ? `-${key}` : key;
      this.sortBy(this.sort === first ? second : first);
      this.keep();
    }

    sortBy(sort) {
      const sign = sort.startsWith("-") ? -1 : 1;
      const key = sort.replace(/^-/, "");
      const column = this.heads.findIndex((head) => head.dataset.key === key);
      if (column < 0) return;
      this.sort = sort;
      this.heads.forEach((head) => head.removeAttribute("aria-sort"));
      const head = this.heads[column];
      head.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
      const sorted = [...this.rows].sort(compareBy(column, "numeric" in head.dataset, sign));
      this.body.append(...sorted);
    }

    filterBy(text, keep) {
      const words = text.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      this.rows.forEach((row, place) => {
        const said = words.every((word) => this.texts[place].includes(word));
        row.hidden = !(said && this.isChosen(row));
        shown += !row.hidden;
      });
      const all = this.rows.length;
      const rows = `${all.toLocaleString("en")} ${all === 1 ? "row" : "rows"}`;
      this.says.textContent = shown === all ? rows : `${shown.toLocaleString("en")} of ${rows}`;
      if (keep) this.keep();
    }

    keep() {
      const state = new URLSearchParams();
      if (this.sort) state.set("sort", this.sort);
      if (this.input.value) state.set("filter", this.input.value);
      this.choices.forEach(({ choice }, key) => {
        if (choice.value) state.set(key, choice.value);
      });
      const said = state.toString();
      history.replaceState(null, "", `#${this.table.id}${said ? `?${said}` : ""}`);
    }

    restore(state) {
      this.sortBy(state.get("sort") ?? "");
      this.input.value = state.get("filter") ?? "";
      this.choices.forEach(({ choice }, key) => { choice.value = state.get(key) ?? ""; });
      this.filterBy(this.input.value, false);
    }
  }

  const tables = new Map(
    [...document.querySelectorAll("table.list")].map((t) => [t.id, new SortableTable(t)]),
  );

  function follow() {
    const [name, said] = location.hash.slice(1).split("?");
    const target = name && document.getElementById(name);
    if (!target) return;
    for (let around = target; around; around = around.parentElement) {
      if (around.tagName === "DETAILS") around.open = true;
    }
    if (said !== undefined && tables.has(name)) tables.get(name).restore(new URLSearchParams(said));
    const title = document.getElementById(`${name}-title`);
    (title ?? target).scrollIntoView();
  }

  addEventListener("hashchange", follow);
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((details) => { details.open = true; });
  });
  follow();
})();
