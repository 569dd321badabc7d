# marker: writes on this host which job may disturb the members of its redundancy group,
# or takes that away. It stands behind record.sh without the last line of that, of which it
# takes the folder, and is told in variables:
#
#   fence key hi lo place job    as in record.sh
#   uhi ulo                      from this token on it may be replaced
#   group host                   whose members, and which of them is to be disturbed
#   over                         key and token of a marker that may be replaced
#   off                          1: it is to be taken away
#
# It says one line, and nothing is done before its own last line:
#
#   marked | left
#   no held KEY TOKEN-HIGH TOKEN-LOW UNTIL-HIGH UNTIL-LOW GROUP HOST JOB
#   no stale|busy|plain WHAT-IS-MISSING|lacking WHAT|disk WHY
#
# The marker is one line in one file, which comes to the disk before it gets its name. Of
# two who come at once one finds that of the other.

# carried reads the marker that is there. One that cannot be read is somebody's.
carried() {
	mkey='' mhi='' mlo='' muhi='' mulo='' mgroup='' mhost='' mjob='' whole=''
	[ -e "$dir/marker" ] || return 1
	read -r mkey mhi mlo muhi mulo mgroup mhost mjob whole <"$dir/marker"
	[ "$whole" = . ] || mkey=- mhi=0 mlo=0 muhi=999999999 mulo=999999999 mgroup=- mhost=- mjob=-
}

# claim writes ours.
claim() {
	if carried; then
		if [ "$mkey" = "$key" ]; then
			older "$hi" "$lo" "$mhi" "$mlo" && no stale
		elif [ "$mkey $mhi $mlo" != "$over" ]; then
			no held "$mkey" "$mhi" "$mlo" "$muhi" "$mulo" "$mgroup" "$mhost" "$mjob"
		fi
	fi
	why=$({
		umask 077
		printf '%s\n' "$key $hi $lo $uhi $ulo $group $host $job ." >"$dir/marker.new" &&
			sync "$dir/marker.new" && mv -f "$dir/marker.new" "$dir/marker" && sync "$dir"
	} 2>&1) || no disk "${why##*: }"
	say marked
}

# leave takes ours away, and nobody else's.
leave() {
	if carried && [ "$mkey" = "$key" ]; then
		older "$hi" "$lo" "$mhi" "$mlo" && no stale
		why=$({ rm -f "$dir/marker" && sync "$dir"; } 2>&1) || no disk "${why##*: }"
	fi
	say left
}

mark() {
	exec 3<&0 </dev/null 2>/dev/null
	again=1 lack='' verb=run
	[ "$off" = 0 ] || verb=ask # a folder is not made for that
	missing
	[ -n "$lack" ] || settle || lack=' folder'
	if [ -n "$lack" ]; then
		[ "$fence" = auto ] || no lacking $lack
		no plain $lack
	fi
	[ -e "$dir/marker.lock" ] || (umask 077; : >>"$dir/marker.lock")
	[ -w "$dir/marker.lock" ] || no disk 'the lock of the marker cannot be opened'
	exec 9>>"$dir/marker.lock"
	for turn in .01 .02 .05 .1 .2 .5 .5 .5; do
		if grab; then
			if [ "$off" = 1 ]; then leave; else claim; fi
			exit 0
		fi
		sleep "$turn" || sleep 1
	done
	no busy
}

mark
