#!/usr/bin/env bash
# tests/scripts/site.sh SOURCE BUILD - builds the documentation as HTML: every public name has its place there and in the search,
# links lead somewhere, and nothing is loaded from the network.
set -euo pipefail
source=$1
command -v mkdocs >/dev/null || { echo "skipped: there is no mkdocs"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
python3 "$source/docs/make/site.py" "$source" "$work"
python3 "$source/docs/make/links.py" "$source" "$work/html" || bad=1
count=0
while IFS= read -r page; do
  html=${page#"$source/docs/api/"} html=${html#backend/}
  html=reference/$(tr / _ <<<"${html%.md}").html
  while IFS= read -r heading; do
    for name in ${heading//,/}; do
      count=$((count + 1))
      grep -qF "id=\"${name,,}\"" "$work/html/$html" || { echo "$html has no place #${name,,}"; bad=1; }
    done
    grep -qF "\"title\": \"$heading\"" "$work/html/search/documents.js" || { echo "the search does not know $heading"; bad=1; }
  done < <(sed -n 's/^## //p' "$page")
done < <(find "$source/docs/api" -name '*.md')
grep -rnE '(src|href)="(https?:)?//' "$work/html" --include=*.html | grep -E '<(script|link|img)' && bad=1
for name in DeviceScope live_nodes imshow NpzOptions set_print_options Tensor; do
  titles=$(grep -cwE "\"title\": \"[^\"]*\b$name\b[^\"]*\"" "$work/html/search/documents.js" || true)
  [ "$titles" -gt 0 ] || { echo "the search does not find $name"; bad=1; }
done
# What a synonym leads to is in a title.
while read -r word others; do
  for name in $others; do
    grep -qiwE "\"title\": \"[^\"]*\b${name}s?_?\b[^\"]*\"" "$work/html/search/documents.js" || { echo "the search finds nothing for $word: no title has $name"; bad=1; }
  done
done <"$source/docs/make/synonyms.tsv"
echo "$count names"
[ "$count" -gt 300 ] || bad=1
exit $bad
