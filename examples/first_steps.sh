#!/usr/bin/env bash
# A first session: a collection, a file of documents, searches by words, by a vector and by both, a document by its key.
#
#   antiphon serve &
#   examples/first_steps.sh [COLLECTION]
#
# Needs `antiphon` on the PATH and a server, at http://127.0.0.1:7700 or where ANTIPHON_ADDRESS says. The collection must not
# be there yet; it is left behind, so that you can go on with it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
collection=${1:-repairs}

say() { printf '\n── %s\n' "$*"; }

say "create a collection of two shards: one vector of 4 dimensions, two text fields"
antiphon collection create "$collection" --shards 2 --vector meaning:4:cosine --text title:en:2 --text text:en

say "import a file"
antiphon import "$here/first_steps.jsonl" --collection "$collection" --quiet

say "search by words"
antiphon search 'broken windows' --collection "$collection" --page-size 3

say "search by a vector: something about the house"
echo '[1, 0, 0, 0]' | antiphon search --vector - --collection "$collection" --page-size 3

say "search by both: the two rankings take turns"
echo '[0, 1, 0, 0]' | antiphon search 'putty' --vector - --collection "$collection" --page-size 4

say "the next page of it"
echo '[0, 1, 0, 0]' | antiphon search 'putty' --vector - --collection "$collection" --page-size 4 --page 2

say "punctuation is no syntax error"
antiphon search '">>> (putty' --collection "$collection" --page-size 1

say "get a document by its key, in any letter case"
antiphon get R-1 --collection "$collection"

say "count"
antiphon collection show "$collection"
