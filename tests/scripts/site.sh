#!/usr/bin/env bash
# tests/scripts/site.sh SOURCE BUILD - builds the documentation as HTML: every function of K has its place there and in the search,
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
  for function in $(sed -n 's/^## //p' "$page"); do
    count=$((count + 1))
    html=reference/$(basename "$page" .md).html
    grep -q "id=\"$function\"" "$work/html/$html" || { echo "$html has no place #$function"; bad=1; }
    grep -q "\"$html#$function\"" "$work/html/search/documents.js" || { echo "the search does not know $function"; bad=1; }
  done
done < <(find "$source/docs/api" -name '*.md')
grep -rnE '(src|href)="(https?:)?//' "$work/html" --include=*.html | grep -E '<(script|link|img)' && bad=1
echo "$count functions"
[ "$count" -gt 140 ] || bad=1
exit $bad
