#!/bin/sh
# Runs every fuzz target of the tree for a short time: fuzz.sh [TIME, as in 10s]
#
# It ends at the first input that breaks a target. Go leaves that input in
# testdata/fuzz of the package, where every later go test tries it again: correct
# the code and commit both.
set -eu
cd "$(dirname "$0")/.."
time=${1:-10s}

for package in $(go list ./...); do
	listed=$(go test -list '^Fuzz' "$package") || { echo "$listed"; exit 1; }
	for target in $(echo "$listed" | grep '^Fuzz'); do
		echo "fuzz: $package $target, $time"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package"
	done
done
