#!/bin/sh
# Builds packages of muster, .deb and .rpm: packages.sh [-v VERSION] [-o DIR] [-b BINARY] [ARCH…]
#
# ARCH is amd64 or arm64, by default both. DIR is dist, and is emptied of packages. VERSION is
# by default 0.0.0 with the time and the hash of the commit. BINARY, for tests, is a muster
# that is there already. The same commit gives the same bytes, in any folder.
set -eu
cd "$(dirname "$0")/.."

out=dist version='' binary=''
while getopts v:o:b: option; do
	case $option in
	v) version=$OPTARG ;;
	o) out=$OPTARG ;;
	b) binary=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- amd64 arm64

# Times in the packages are that of the commit, and in UTC.
time=$(git log -1 --format=%ct)
stamp=$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y%m%d%H%M%S)
commit=$(git rev-parse --short=12 HEAD)
: "${version:=0.0.0-git$stamp.$commit}"
case $version in
[0-9]*.[0-9]*.[0-9]*) ;;
*) echo "packages: version $version: want three numbers, such as 1.2.0 or 1.2.0-rc1" >&2; exit 2 ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build() {
	if [ -n "$binary" ]; then cp "$binary" "$2"; return; fi
	GOARCH=$1 go build -trimpath -buildvcs=false \
		-ldflags "-s -w -X muster/cli.Version=$version" -o "$2" ./cmd/muster
}

# Pages and completion come from the commands of a program that runs here.
export CGO_ENABLED=0
[ -x bin/nfpm ] && [ bin/nfpm -nt tools/go.sum ] ||
	go build -C tools -o ../bin/nfpm github.com/goreleaser/nfpm/v2/cmd/nfpm
go build -C tools -o ../bin/sbom ./cmd/sbom
build "$(go env GOHOSTARCH)" "$work/muster"
"$work/muster" man "$work/man"
gzip -n9 "$work"/man/*
mkdir -p "$work/completion" "$out"
"$work/muster" completion bash > "$work/completion/muster.bash"
"$work/muster" completion zsh > "$work/completion/_muster"
"$work/muster" completion fish > "$work/completion/muster.fish"
gzip -n9c CHANGELOG.md > "$work/changelog.gz"

rm -f "$out"/*.deb "$out"/*.rpm
for ARCH in "$@"; do
	BUILT=$work/$ARCH PACKAGE_VERSION=$version
	mkdir "$BUILT"
	cp -r "$work/man" "$work/completion" "$work/changelog.gz" "$BUILT"
	build "$ARCH" "$BUILT/muster"
	bin/sbom -version "$version" -time "$time" "$BUILT/muster" > "$BUILT/sbom.json"
	export ARCH BUILT PACKAGE_VERSION SOURCE_DATE_EPOCH="$time"
	for kind in deb rpm; do
		bin/nfpm package --config etc/package/nfpm.yaml --packager $kind --target "$out/" > "$work/said" ||
			{ cat "$work/said" >&2; exit 1; }
	done
	cp "$BUILT/sbom.json" "$out/muster_${version}_$ARCH.cdx.json"
done
ls -1 "$out"
