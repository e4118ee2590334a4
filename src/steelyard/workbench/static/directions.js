// The direction of each block of a text: that of its letters. A block that begins with a letter of an option or a name in Latin
// letters ("A) أكبر") runs from the right where it has words of a text that does; a browser decides by the first letter alone.

const RIGHT_TO_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/gu;
const BLOCKS = "p, li, h1, h2, h3, h4, h5, h6, th, td, ul, ol, blockquote, table";
const OTHERS = "pre, code, .math, .hidden-character";

// Return "rtl" or "ltr", or null for a text without letters. `isRightToLeft`: the whole of which it is a part is.
export const directionOf = (text, isRightToLeft = false) => {
  const letters = text.match(/\p{L}/gu)?.length ?? 0, fromRight = text.match(RIGHT_TO_LEFT)?.length ?? 0;
  if (!letters) return null;
  return fromRight > (isRightToLeft ? 0 : letters / 2) ? "rtl" : "ltr";
};

// A path, address or call of a program within words that run from the right, whose signs would change their places.
const TECHNICAL = /(?:--|[~./\\#$@%]|(?=\w))(?:[!-'*-~]|\([!-'*-~]{0,100}\)){1,300}(?<=[\w/+#=\\*%)])/g;
export const technicalIn = (text) => [...text.matchAll(TECHNICAL)].filter(([found]) => /[A-Za-z]/.test(found) && /[^A-Za-z0-9]/.test(found)).map(({ 0: found, index }) => [index, index + found.length]);

const isolateTechnical = (text) => {
  const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT), nodes = [];
  while (walker.nextNode()) nodes.push(walker.currentNode);
  for (const node of nodes) {
    if (node.parentElement.closest(OTHERS) || node.parentElement.closest("[dir]")?.dir !== "rtl") continue;
    for (const [start, end] of technicalIn(node.data).reverse()) {
      const part = node.splitText(start), place = document.createElement("bdi");
      part.splitText(end - start);
      part.replaceWith(place);
      place.dir = "ltr";
      place.append(part);
    }
  }
};

const wordsOf = (node) => {
  const words = node.cloneNode(true);
  for (const other of words.querySelectorAll(OTHERS)) other.remove();
  return words.textContent;
};

// Give a text and its blocks their directions, also where it is not in the page yet.
export const layOut = (text) => {
  const whole = directionOf(wordsOf(text));
  if (whole === null) return;
  text.dir = whole;
  for (const block of text.querySelectorAll(BLOCKS)) {
    const own = directionOf(wordsOf(block), whole === "rtl");
    if (own !== null) block.dir = own;
  }
  isolateTechnical(text);
};

globalThis.document?.querySelectorAll("div.text").forEach(layOut);
