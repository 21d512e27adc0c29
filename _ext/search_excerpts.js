// What the search page quotes from a page that it found: SEARCH_WORDS has the words of each.
Search.htmlToText = (page, anchor) => {
  const [text, places] = SEARCH_WORDS[page];
  const [begin, end] = places[anchor?.slice(1)] ?? [0, text.length];
  return text.slice(begin, end);
};
