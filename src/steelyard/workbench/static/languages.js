// Names of languages in that of the page, from the browser's own table; a code that it does not know stays.

export const languageName = (code) => {
  try {
    return new Intl.DisplayNames([document.documentElement.lang], { type: "language" }).of(code.replaceAll("_", "-"));
  } catch {
    return code;
  }
};

// Cells of tables, and names at the rows of a plot.
for (const each of globalThis.document?.querySelectorAll("[data-language], [data-languages] text.name") ?? []) each.textContent = languageName(each.textContent);
