#!/usr/bin/env bash
# Runs the tests in which somebody attacks: with the user of a node or the whole of Redis, with a
# token, with rights for one customer. Arguments go to go test.
#
#   tools/redteam.sh [ARGUMENT…]
set -euo pipefail
cd "$(dirname "$0")/.."
exec go test ./cmd/muster ./server ./jobs/queue -count=1 -timeout 20m -v -run \
	'WriterToRedis|NoServerSigns|StolenUser|ServerNeverRuns|OperatorOfOneCustomer|NoRoleReaches|WhatACallerMayNotSee' "$@"
