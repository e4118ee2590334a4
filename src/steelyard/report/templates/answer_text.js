"use strict";
// Texts of prompts and answers as nodes: Markdown, code, formulas, or as written. No text becomes markup: every node is made here.
const AnswerText = (() => {
  const MOST_RENDERED = 60000, MOST_CODE = 40000, MOST_FORMULAS = 400, MOST_CODES = 6, MOST_MARKS = 1000, FIRST_PART = 20000;
  const make = (name, attributes, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) if (value) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };

  // Language codes of the data (BCP 47 or FLORES) as the tags by which a browser chooses glyphs and voices.
  const SHORT = { zho: "zh", jpn: "ja", kor: "ko", arb: "ar", heb: "he", hin: "hi", eng: "en", pes: "fa" };
  const tag = (code) => code ? code.replace("_", "-").replace(/^[a-z]{3}/, (three) => SHORT[three] || three) : null;

  // Characters that hide or reorder others are shown by their codes: HIDDEN_CHARACTERS of core/text.py, character for character.
  const HIDDEN = /(\u{1f3f4}[\u{e0020}-\u{e007f}]+)|((?:[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u115f\u1160\u17b4\u17b5\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e00ff}\ud800-\udfff]|(?<![\u0e00-\u109f\u1780-\u17ff\u1950-\u1aaf])\u200b(?![\u0e00-\u109f\u1780-\u17ff\u1950-\u1aaf])|(?<![\u00a9\u00ae\u0600-\u109f\u1780-\u18af\u1900-\u1cff\u20e3\u2190-\u2bff\ua800-\uabff\ufb50-\ufdff\ufe0e\ufe0f\ufe70-\ufefc\u{11000}-\u{11fff}\u{1e900}-\u{1e95f}\u{1f000}-\u{1faff}])[\u200c\u200d\u180e](?![\u00a9\u00ae\u0600-\u109f\u1780-\u18af\u1900-\u1cff\u20e3\u2190-\u2bff\ua800-\uabff\ufb50-\ufdff\ufe0e\ufe0f\ufe70-\ufefc\u{11000}-\u{11fff}\u{1e900}-\u{1e95f}\u{1f000}-\u{1faff}])|[\ufe00-\ufe0f\u{e0100}-\u{e01ef}]{2,})+)/gu;
  const codes = (run) => {
    const all = [...run], named = all.slice(0, MOST_CODES).map((one) => `U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`);
    return named.join(" ") + (all.length > MOST_CODES ? ` … (${all.length})` : "");
  };
  const shown = (text) => {
    const parts = [];
    let from = 0;
    for (const match of text.matchAll(HIDDEN)) {
      if (match[1]) continue;
      parts.push(text.slice(from, match.index), parts.length < MOST_MARKS ? make("span", { class: "hidden-character", dir: "ltr" }, codes(match[2])) : "\ufffd");
      from = match.index + match[0].length;
    }
    return [...parts, text.slice(from)].filter((part) => part !== "");
  };

  // Blocks take the direction of their letters: "A) أكبر" runs from the right in a text that does. A browser decides by the first letter.
  const RIGHT_TO_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/gu;
  const direction = (text, isRightToLeft = false) => {
    const letters = (text.match(/\p{L}/gu) || []).length, fromRight = (text.match(RIGHT_TO_LEFT) || []).length;
    return fromRight > (isRightToLeft ? 0 : letters / 2) ? "rtl" : "ltr";
  };
  const wordsOf = (node) => {
    const words = node.cloneNode(true);
    for (const other of words.querySelectorAll("pre, code, .formula, .hidden-character, .address")) other.remove();
    return words.textContent;
  };
  const laidOut = new WeakSet();
  const layOut = (place) => {
    const words = wordsOf(place);
    if (!/\p{L}/u.test(words)) return;
    laidOut.add(place);
    place.dir = direction(words);
    for (const block of place.querySelectorAll([...BLOCKS, ...DIRECTED, "li", ".wide-table"].join())) {
      const own = wordsOf(block);
      if (/\p{L}/u.test(own)) block.dir = direction(own, place.dir === "rtl");
    }
    isolateTechnical(place);
  };
  // A path, address or call of a program within words that run from the right, whose signs would change their places.
  const TECHNICAL = /(?:--|[~./\\#$@%]|(?=\w))(?:[!-'*-~]|\([!-'*-~]{0,100}\)){1,300}(?<=[\w/+#=\\*%)])/g;
  const isolateTechnical = (place) => {
    const walker = document.createTreeWalker(place, NodeFilter.SHOW_TEXT), nodes = [];
    while (walker.nextNode()) nodes.push(walker.currentNode);
    for (const node of nodes) {
      if (node.parentElement.closest(".katex, .hidden-character") || node.parentElement.closest("[dir]").dir !== "rtl") continue;
      for (const { 0: found, index } of [...node.data.matchAll(TECHNICAL)].reverse()) {
        if (!/[A-Za-z]/.test(found) || !/[^A-Za-z0-9]/.test(found)) continue;
        const part = node.splitText(index);
        part.splitText(found.length);
        part.replaceWith(make("bdi", { dir: "ltr" }, part.data));
      }
    }
  };

  const coloured = (code, language) => {
    const known = window.hljs && language && code.length <= MOST_CODE && window.hljs.getLanguage(language);
    if (!known) return shown(code);
    const result = window.hljs.highlight(code, { language, ignoreIllegals: true }).value;
    // Only text and the classes of spans are taken over from the highlighter's result, which is parsed in a document that runs nothing.
    const copied = (node) => node.nodeType === Node.TEXT_NODE ? shown(node.data)
      : [make("span", { class: (node.getAttribute("class") || "").split(/\s+/).filter((name) => /^(hljs-[\w-]+|\w+_)$/.test(name)).join(" ") }, ...[...node.childNodes].flatMap(copied))];
    return [...new DOMParser().parseFromString(result, "text/html").body.childNodes].flatMap(copied);
  };
  const codeBlock = (code, info) => {
    const name = info.trim().split(/[\s{]/, 1)[0].toLowerCase().slice(0, 30);
    const place = make("pre", { dir: "ltr", tabindex: "0", role: "region", "aria-label": name || Page.word("code") }, make("code", {}, ...coloured(code.replace(/\n$/, ""), name)));
    return name ? make("div", { class: "code-block" }, make("span", { class: "code-name", dir: "ltr", "aria-hidden": "true" }, ...shown(name)), place) : place;
  };

  const refused = (context) => { throw new Error(`${context.command} is not carried out`); };
  const formula = (token, budget) => {
    const isBlock = token.markup === "$$" || token.markup === "\\[";
    const place = make(isBlock ? "div" : "span", { class: isBlock ? "formula block" : "formula", dir: "ltr" });
    const source = token.markup === "$" ? `$${token.content}$` : token.content;
    budget.formulas += 1;
    if (!window.katex || budget.formulas > MOST_FORMULAS) { place.append(make("code", {}, ...shown(source))); return place; }
    try {
      window.katex.render(token.content, place, { displayMode: isBlock, throwOnError: true, trust: refused, strict: "ignore", maxSize: 20, maxExpand: 500 });
    } catch (error) {
      place.replaceChildren(make("code", { class: "unreadable", title: String(error.message).slice(0, 200) }, ...shown(source)));
    }
    return place;
  };

  // Where a link or picture leads is shown; it cannot be followed, for an answer may lead anywhere.
  const target = (place, address) => {
    place.title = address;
    if (address && place.textContent.trim() !== address) place.append(make("span", { class: "address", dir: "ltr" }, ...shown(address.length > 80 ? `${address.slice(0, 79)}…` : address)));
  };

  const ALIGNED = /^text-align:(left|right|center)$/;
  const BLOCKS = new Set(["p", "th", "td", "h1", "h2", "h3", "h4", "h5", "h6"]), DIRECTED = new Set(["ul", "ol", "blockquote", "table"]);
  const TAGS = new Set([...BLOCKS, ...DIRECTED, "li", "thead", "tbody", "tr", "strong", "em", "s"]);
  const opened = (token) => {
    if (token.type === "link_open") return make("span", { class: "link" });
    if (!TAGS.has(token.tag)) return null;
    const level = /^h([1-6])$/.exec(token.tag);
    const place = make(level ? `h${Math.min(6, Number(level[1]) + 3)}` : token.tag, level ? { class: `level-${level[1]}` } : {});
    if (BLOCKS.has(token.tag)) place.dir = "auto";
    const aligned = ALIGNED.exec(token.attrGet("style") || "");
    if (aligned) place.style.textAlign = aligned[1];
    if (token.tag === "ol" && /^\d{1,9}$/.test(token.attrGet("start") || "")) place.start = Number(token.attrGet("start"));
    return place;
  };
  const leaf = (token, budget) => {
    switch (token.type) {
      case "text": case "text_special": return shown(token.content);
      case "softbreak": case "hardbreak": return [make("br", {})];
      case "code_inline": return [make("code", { dir: "ltr" }, ...shown(token.content))];
      case "code_block": case "fence": return [codeBlock(token.content, token.info || "")];
      case "formula": return [formula(token, budget)];
      case "hr": return [make("hr", {})];
      case "image": {
        const place = make("span", { class: "link picture" }, "🖼 ", ...shown(token.content));
        target(place, token.attrGet("src") || "");
        return [place];
      }
      default: return shown(token.content || "");
    }
  };
  const built = (tokens, root, budget) => {
    const open = [[root, null]];
    for (const token of tokens) {
      const place = open[open.length - 1][0];
      if (token.type === "inline") built(token.children, place, budget);
      else if (token.nesting > 0) {
        const node = token.hidden ? null : opened(token);
        if (node) place.append(node.localName === "table" ? make("div", { class: "wide-table", dir: node.dir, tabindex: "0", role: "region", "aria-label": Page.word("table") }, node) : node);
        open.push([node || place, token]);
      } else if (token.nesting < 0) {
        const [node, opening] = open.length > 1 ? open.pop() : [root, null];
        if (opening && opening.type === "link_open") target(node, opening.attrGet("href") || "");
      } else place.append(...leaf(token, budget));
    }
    return root;
  };

  // As written, in parts of bounded size: a line of a million characters is not laid out before it is asked for.
  const raw = (text, place) => {
    place.append(...shown(text.slice(0, FIRST_PART)));
    if (text.length <= FIRST_PART) return;
    const rest = make("button", { type: "button", class: "rest" }, `${Page.word("show_rest")} (${(text.length - FIRST_PART).toLocaleString("en")})`);
    rest.addEventListener("click", (event) => { event.stopPropagation(); rest.remove(); raw(text.slice(FIRST_PART), place); });
    place.append(rest);
  };

  let parser = null;
  const redraws = new WeakMap(), switches = new WeakMap();
  let isRaw = Page.stored("steelyard-raw") === "1";
  const canRender = (text) => Boolean(window.markdownit) && text.length <= MOST_RENDERED;
  const draw = (place, text, asWritten) => {
    place.replaceChildren();
    place.classList.remove("rendered");
    // As written, each line has the direction of its first letter: it may be code.
    if (laidOut.delete(place)) place.dir = "auto";
    if (asWritten || !canRender(text)) { raw(text, place); return; }
    try {
      parser = parser || MarkdownDialect.make();
      built(parser.parse(text, {}), place, { formulas: 0 });
      layOut(place);
      place.classList.add("rendered");
    } catch (error) {
      console.warn("a text is shown as written:", error);
      place.replaceChildren();
      raw(text, place);
    }
  };

  // Return the node of a text; `language` is the code of the data.
  const node = (text, language) => {
    const place = make("div", { class: "text", dir: "auto", lang: tag(language) });
    let own = null;
    const redraw = (wanted) => { own = wanted === undefined ? null : wanted; draw(place, text, own === null ? isRaw : own); };
    redraws.set(place, { redraw, isRaw: () => (own === null ? isRaw : own) });
    redraw();
    return place;
  };
  // Return a button that switches one text between rendered and as written.
  const toggle = (place) => {
    const state = redraws.get(place);
    const button = make("button", { type: "button", class: "raw-switch" });
    const name = () => { button.textContent = Page.word(state.isRaw() ? "show_rendered" : "show_raw"); button.setAttribute("aria-pressed", String(state.isRaw())); };
    button.addEventListener("click", (event) => { event.stopPropagation(); state.redraw(!state.isRaw()); name(); });
    switches.set(button, name);
    name();
    return button;
  };
  const setRaw = (wanted) => {
    isRaw = wanted;
    Page.stored("steelyard-raw", wanted ? "1" : "0");
    for (const place of document.querySelectorAll(".text")) if (redraws.has(place)) redraws.get(place).redraw();
    for (const button of document.querySelectorAll(".raw-switch")) if (switches.has(button)) switches.get(button)();
  };
  // A text with marks stays as it is written: only characters that hide or reorder others become codes.
  const reveal = (place) => {
    for (const part of [...place.childNodes]) if (part.nodeType === Node.TEXT_NODE) part.replaceWith(...shown(part.data)); else reveal(part);
  };
  return { node, reveal, toggle, setRaw, isRaw: () => isRaw, tag, hasLibrary: () => Boolean(window.markdownit) };
})();

// Examples of sections are in the page as written; they are shown as the texts of items are.
for (const place of document.querySelectorAll(".example .text")) {
  if (place.classList.contains("marked")) { AnswerText.reveal(place); continue; }
  const shown = AnswerText.node(place.textContent);
  shown.classList.add(...place.classList);
  shown.dir = place.dir;
  place.replaceWith(shown);
}
