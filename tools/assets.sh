#!/bin/sh
# Writes the list of the files of the pages, with their hashes: server/pages/assets/FILES.
#
# All of them are written for muster. One of somebody else needs its version and its licence here.
set -eu
cd "$(dirname "$0")/../server/pages/assets"
{
	echo '# The files that browsers get: name, version, licence, sha256. tools/assets.sh writes this list.'
	for f in *.css *.js *.svg; do
		echo "$f own as-muster $(sha256sum "$f" | cut -d' ' -f1)"
	done
} >FILES
