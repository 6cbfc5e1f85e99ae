#!/usr/bin/env bash
# tests/checks/folders.sh SOURCE - no folder of the sources, the tests or the pages holds more than 45 files: a family that grows gets folders.
set -euo pipefail
cd "$1"
most=45
# In a clone of ours what git knows; else all but build folders.
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then git ls-files -co --exclude-standard; else find . \( -name 'build*' -o -name .git \) -prune -o -type f -printf '%P\n'; fi |
  awk -v most=$most '
    { folder = sub("/[^/]*$", "") ? $0 : "."; ++files[folder] }
    END { for (folder in files) {
            ++folders
            if (files[folder] > files[largest]) largest = folder
            if (files[folder] > most) { print folder ": " files[folder] " files"; bad = 1 } }
          printf "%d folders, the largest with %d files: %s; at most %d\n", folders, files[largest], largest, most
          exit bad || folders < 20 }'
