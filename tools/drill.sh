#!/usr/bin/env bash
# Plays every page of docs/RUNBOOK_OPERATOR.md on a real house: a test makes the fault, types the
# commands of the page, and compares what the hosts saw with what muster says of them. Arguments go
# to go test.
#
#   tools/drill.sh [ARGUMENT…]
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install.sh redis
exec go test ./cmd/muster -count=1 -timeout 30m -v -drill \
	-run 'TestDrill|TestEveryPageForOperators|TestStepsOfAPage' "$@"
