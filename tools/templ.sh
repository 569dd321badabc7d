#!/bin/sh
# Makes the Go of the pages from server/pages/*.templ, with templ at the version in tools/go.mod.
set -eu
cd "$(dirname "$0")"
go tool templ generate -path ../server/pages
