#!/usr/bin/env bash
# Prints how many lines of the product each room has (Go, Lua, shell; no tests, no help for
# tests, no generated file), and the difference to an earlier commit.
#
#   tools/rooms.sh [COMMIT]   default: where this branch left its upstream, else the last commit
set -euo pipefail
cd "$(dirname "$0")/.."

if ! git rev-parse --verify -q HEAD >/dev/null; then
	echo "rooms: this is no git repository: nothing to compare with"
	exit 0
fi
base=${1:-$(git merge-base HEAD '@{upstream}' 2>/dev/null || git rev-parse --verify -q HEAD~1 || git rev-parse HEAD)}

# lines COMMIT…: path and number of lines of each file of the product.
lines() {
	git grep -c '' "$@" -- '*.go' '*.lua' '*.sh' ':!*_test.go' ':!*_templ.go' ':!bench' ':!tools' ':!testkit' \
		':!*test/*' ':!*/testdata/*' ':!internal/tidy' ':!internal/sim' ':!internal/chaos' | sed 's/^[0-9a-f]\{40\}://'
}

{
	lines "$(git rev-parse "$base^{commit}")" | sed 's/^/- /'
	lines | sed 's/^/+ /'
} | awk -v base="$(git rev-parse --short "$base")" '
	{
		n = split($2, part, ":"); room = part[1]; if (!sub("/[^/]*$", "", room)) room = "."
		rooms[room]; now[room] += $1 == "+" ? part[n] : 0; before[room] += $1 == "-" ? part[n] : 0
	}
	function show(room, lines, difference) {
		printf "%-28s %7d%s\n", room, lines, difference ? sprintf("  %+d", difference) : "" | "sort -k2,2nr"
	}
	END {
		for (room in rooms) {
			show(room, now[room], now[room] - before[room])
			all += now[room]; old += before[room]
		}
		close("sort -k2,2nr")
		printf "%-28s %7d  %+d since %s\n", "all rooms", all, all - old, base
	}'
