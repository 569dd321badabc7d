#!/usr/bin/env bash
# Works with the muster of the release before, gives a house of three servers and six masters this
# one under load, and goes back: every job of every kind of task must succeed, and by the hosts' log
# each step runs once. The release before is the newest tag, or the commit that
# internal/chaos/previous.txt names. Arguments go to go test, such as -chaos.previous COMMIT.
#
#   tools/upgrade.sh [ARGUMENT…]
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install.sh redis sshd
exec go test ./internal/chaos -count=1 -timeout 0 -v -run TestUpgrade -upgrade.for 1m -chaos.servers 3 \
	-chaos.nodes 6 "$@"
