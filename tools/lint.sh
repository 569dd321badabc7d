#!/bin/sh
# Checks the form of the tree: gofmt, go vet, staticcheck, go.mod and go.sum.
#
# It goes on after a mistake, so that one run tells all, and ends with 1 if there
# was any. It changes nothing but bin/staticcheck, which it builds at the version
# in tools/go.mod. The rules of the house are a test: go test ./internal/tidy.
set -u
cd "$(dirname "$0")/.."
failed=0

# check NAME COMMAND…: what the command prints is shown; it fails by its status.
check() {
	name=$1
	shift
	if "$@"; then echo "ok    $name"; else
		echo "FAIL  $name"
		failed=1
	fi
}

formatted() {
	wrong=$(gofmt -l .) || return 1
	[ -z "$wrong" ] && return
	echo "gofmt -w these:" $wrong
	return 1
}

check gofmt formatted
go build -C tools -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck || exit 1
staticcheck=$PWD/bin/staticcheck
for mod in . tools tools/browser bench; do
	[ -f $mod/go.mod ] || continue
	check "go vet, $mod" go vet -C $mod ./...
	check "staticcheck, $mod" sh -c "cd $mod && '$staticcheck' ./..."
	check "go mod tidy, $mod" go mod tidy -C $mod -diff
	# A module that replaces another by a folder has nothing to verify it by.
	grep -q '^replace' $mod/go.mod || check "go mod verify, $mod" go mod verify -C $mod
done
exit $failed
