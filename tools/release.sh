#!/bin/sh
# Makes a release in dist/: release.sh VERSION, such as 1.2.0.
#
# It refuses a tree that differs from its commit, and a version without a section
# `## VERSION - DATE` in CHANGELOG.md. It builds all packages twice, the second time from a
# clone in another folder, and refuses them unless both are the same bytes. dist/ then has
# the packages, the section as CHANGES.md, a list of modules of each program
# (CycloneDX), and SHA256SUMS. Signing and publishing are not its work.
set -eu
cd "$(dirname "$0")/.."

refuse() { echo "release: $*" >&2; exit 2; }
version=${1:-}
case $version in
'') refuse 'which version? make release ARGS=1.2.0' ;;
[0-9]*.[0-9]*.[0-9]*) ;;
*) refuse "version $version: want three numbers, such as 1.2.0" ;;
esac
changed=$(git status --porcelain)
[ -z "$changed" ] || refuse "the tree differs from its commit: commit or remove these first
$changed"
section() {
	awk -v v="$version" '/^## / {on = ($2 == v || $2 == "[" v "]")} on' CHANGELOG.md
}
[ -n "$(section)" ] || refuse "CHANGELOG.md has no section $version: write \`## $version - $(date -u +%F)\`"

rm -rf dist
tools/packages.sh -v "$version" -o dist > /dev/null

again=$(mktemp -d)
trap 'rm -rf "$again"' EXIT
git clone -q --no-hardlinks . "$again/elsewhere"
mkdir "$again/elsewhere/bin"
cp -p bin/nfpm bin/sbom "$again/elsewhere/bin/"
touch "$again/elsewhere/bin/nfpm"
"$again/elsewhere/tools/packages.sh" -v "$version" -o "$again/dist" > /dev/null
for one in dist/*; do
	cmp "$one" "$again/dist/${one#dist/}" || {
		rm -rf dist
		refuse "two builds of ${one#dist/} differ: nothing is released"
	}
done

section > dist/CHANGES.md
(cd dist && sha256sum -- * > ../SHA256SUMS.new && mv ../SHA256SUMS.new SHA256SUMS)
echo "release $version of commit $(git rev-parse --short=12 HEAD), two builds are the same bytes:"
ls -1 dist
