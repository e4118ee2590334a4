"use strict";
// The Markdown of answers: formulas, emphasis next to Chinese and Japanese punctuation, no HTML, a line break where the writer made one.
const MarkdownDialect = (() => {
  const MOST_FORMULA = 4000, MOST_LINES = 100;
  const ENVIRONMENT = /^\\begin\{((?:equation|align|alignat|gather|multline|eqnarray|split|cases|[pbvBV]?matrix|array)\*?)\}/;
  const CLOSERS = { "$$": "$$", "\\[": "\\]", "\\(": "\\)" };

  // A price is no formula: words in a row, or letters of a script that formulas do not use, and no mark of TeX.
  const isFormula = (content) => {
    if (!content || content.length > MOST_FORMULA || /^\s|\s$|\n\s*\n/.test(content)) return false;
    if (/[\\^_={}]/.test(content)) return true;
    return !/[\p{L}]{2,}\s+[\p{L}]{2,}/u.test(content) && !/[^\P{L}\p{Script=Latin}\p{Script=Greek}]/u.test(content);
  };

  const end = (source, closer, from) => {
    for (let at = source.indexOf(closer, from); at >= 0; at = source.indexOf(closer, at + 1)) {
      let slashes = 0;
      while (source[at - 1 - slashes] === "\\") slashes += 1;
      if (slashes % 2 === 0) return at;
    }
    return -1;
  };

  const push = (state, silent, content, markup, next) => {
    if (!silent) Object.assign(state.push("formula", "math", 0), { content: content.trim(), markup });
    state.pos = next;
    return true;
  };
  const inline = (state, silent) => {
    const { src, pos } = state, two = src.slice(pos, pos + 2);
    if (CLOSERS[two]) {
      // A search to the end that found nothing is not repeated from each later opening.
      state.unclosed = state.unclosed || new Set();
      const stop = state.unclosed.has(two) ? -1 : end(src, CLOSERS[two], pos + 2), content = stop < 0 ? "" : src.slice(pos + 2, stop);
      if (stop < 0) state.unclosed.add(two);
      if (content.trim() && content.length <= MOST_FORMULA) return push(state, silent, content, two, stop + 2);
      if (two !== "$$") return false;
      if (!silent) state.pending += "$$";
      state.pos += 2;
      return true;
    }
    if (src[pos] !== "$" || /[A-Za-z0-9]/.test(src[pos - 1] || "")) return false;
    const stop = end(src, "$", pos + 1);
    if (stop < 0 || /\d/.test(src[stop + 1] || "") || !isFormula(src.slice(pos + 1, stop))) return false;
    return push(state, silent, src.slice(pos + 1, stop), "$", stop + 1);
  };

  // A formula that begins a line, over as many lines as it takes to its end; without an end it is text.
  const block = (state, first, last, silent) => {
    const start = state.bMarks[first] + state.tShift[first];
    const line = state.src.slice(start, state.eMarks[first]), opening = line.slice(0, 2), environment = ENVIRONMENT.exec(line);
    if (state.sCount[first] - state.blkIndent >= 4 || !(environment || opening === "$$" || opening === "\\[")) return false;
    const closer = environment ? `\\end{${environment[1]}}` : CLOSERS[opening];
    state.env.lastCloser = state.env.lastCloser || new Map();
    if (!state.env.lastCloser.has(closer)) state.env.lastCloser.set(closer, state.src.lastIndexOf(closer));
    if (state.env.lastCloser.get(closer) < start + 2) return false;
    const source = state.getLines(first, Math.min(last, first + MOST_LINES), state.blkIndent, false), indent = source.length - source.trimStart().length;
    const from = indent + (environment ? 0 : 2), stop = end(source, closer, from);
    if (stop < 0 || stop - from > MOST_FORMULA) return false;
    const behind = stop + closer.length, rest = source.slice(behind).split("\n", 1)[0];
    const content = source.slice(from, environment ? behind : stop).trim();
    if (!content || !/^[\s.,;:。，；：]*$/.test(rest)) return false;
    if (silent) return true;
    const lines = source.slice(0, behind).split("\n").length;
    Object.assign(state.push("formula", "math", 0), { content, markup: opening === "\\[" ? "\\[" : "$$", map: [first, first + lines] });
    state.line = first + lines;
    return true;
  };

  // CommonMark's rule asks for a space or punctuation beside emphasis that touches punctuation; Chinese writes none.
  const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff00-\uffef]/u;
  const isSpace = (character) => !character || /\s/.test(character);
  const isMark = (character) => /[\p{P}\p{S}]/u.test(character);
  const around = (source, start, stop) => [String.fromCodePoint(...[...source.slice(Math.max(0, start - 2), start)].slice(-1).map((one) => one.codePointAt(0))),
    stop < source.length ? String.fromCodePoint(source.codePointAt(stop)) : ""];
  function scanDelims(start, canSplitWord) {
    let stop = start;
    while (stop < this.posMax && this.src[stop] === this.src[start]) stop += 1;
    const [before, after] = around(this.src.slice(0, this.posMax), start, stop);
    const opens = !isSpace(after) && (!isMark(after) || isSpace(before) || isMark(before) || WIDE.test(before));
    const closes = !isSpace(before) && (!isMark(before) || isSpace(after) || isMark(after) || WIDE.test(after));
    return { can_open: opens && (canSplitWord || !closes || isMark(before)), can_close: closes && (canSplitWord || !opens || isMark(after)), length: stop - start };
  }

  const make = () => {
    const parser = window.markdownit({ html: false, linkify: false, breaks: true, maxNesting: 40 });
    parser.inline.ruler.before("escape", "formula", inline);
    parser.block.ruler.before("fence", "formula", block, { alt: ["paragraph", "reference", "blockquote", "list"] });
    parser.inline.State = class extends parser.inline.State {};
    parser.inline.State.prototype.scanDelims = scanDelims;
    return parser;
  };
  return { make, isFormula };
})();
