// docs/make/theme/search.js - search as you type. The texts come with the page as a script, so that it works from the disk too.
(function () {
  var query = document.getElementById("query"), results = document.getElementById("results"), article = document.querySelector("article");
  var index = null;

  function build() {
    index = lunr(function () {
      this.ref("at");
      this.field("title", {boost: 20});
      this.field("text");
      // Names of functions are words: neither stemmed nor stopped ("all", "any").
      this.pipeline.reset();
      this.searchPipeline.reset();
      this.tokenizer.separator = /[^\w]+/;
      documents.forEach(function (d, at) { this.add({at: at, title: d.title, text: d.text}); }, this);
    });
  }

  function find(words) {
    return index.query(function (q) {
      words.forEach(function (word) {
        q.term(word, {boost: 10});
        q.term(word, {wildcard: lunr.Query.wildcard.TRAILING});
        (synonyms[word] || []).forEach(function (other) { q.term(other, {boost: 5}); });
        if (word.length > 4) q.term(word, {editDistance: 1, boost: 0.2});
      });
    });
  }

  function excerpt(text, word) {
    var at = Math.max(0, text.toLowerCase().indexOf(word) - 60);
    return (at ? "..." : "") + text.substr(at, 200);
  }

  function show() {
    var words = query.value.toLowerCase().match(/\w+/g);
    results.hidden = !words;
    article.hidden = !!words;
    results.textContent = "";
    if (!words) return;
    if (!index) build();
    var found = find(words).slice(0, 30);
    if (!found.length) results.textContent = "No results for " + query.value + ".";
    found.forEach(function (hit) {
      var d = documents[hit.ref], link = document.createElement("a"), text = document.createElement("p");
      link.href = base + "/" + d.location;
      link.textContent = d.title;
      link.onclick = function () { query.value = ""; show(); };
      text.textContent = excerpt(d.text, words[0]);
      results.append(link, text);
    });
  }

  query.addEventListener("input", show);
  query.addEventListener("keydown", function (e) {
    var first = results.querySelector("a");
    if (e.key === "Enter" && first) first.click();
    if (e.key === "Escape") { query.value = ""; show(); }
  });
  document.addEventListener("keydown", function (e) {
    if (e.key === "/" && document.activeElement !== query) { query.focus(); e.preventDefault(); }
  });
  var asked = new URLSearchParams(location.search).get("q");
  if (asked) { query.value = asked; show(); }
})();
