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
#   no stale|busy [step]|plain WHAT-IS-MISSING|lacking WHAT|disk WHY
#
# The marker is one line in one file, which comes to the disk before it gets its name. Of
# two who come at once one finds that of the other.

# quiet tells that no step is at work here, and lets none begin before the marker is
# written: the step of a job whose marker gives way is refused, or has ended. See overtaken.
quiet() {
	[ -e "$dir/lock" ] || (umask 077; : >>"$dir/lock")
	# exec is a special builtin: a shell that cannot open it would end without a word.
	[ -r "$dir/lock" ] || no disk 'the lock cannot be opened'
	exec 8<"$dir/lock"
	flock -n 8 || return 1
	newest "$dir"/*.started
	[ -z "$found" ] || [ -e "$found.end" ] || ! runs "$found"
}

# claim writes ours. It is false if a step is in the way.
claim() {
	if carried; then
		if [ "$mkey" = "$key" ]; then
			older "$hi" "$lo" "$mhi" "$mlo" && no stale
		elif [ "$mkey $mhi $mlo" != "$over" ]; then
			no held "$mkey" "$mhi" "$mlo" "$muhi" "$mulo" "$mgroup" "$mhost" "$mjob"
		else
			quiet || return 1
		fi
	fi
	why=$({
		umask 077
		printf '%s\n' "$key $hi $lo $uhi $ulo $group $host $job ." >"$dir/marker.new" &&
			sync "$dir/marker.new" && mv -f "$dir/marker.new" "$dir/marker" && sync "$dir"
	} 2>&1) || no disk "$(trouble "$why")"
	say marked
}

# leave takes ours away, and nobody else's.
leave() {
	if carried && [ "$mkey" = "$key" ]; then
		older "$hi" "$lo" "$mhi" "$mlo" && no stale
		why=$({ rm -f "$dir/marker" && sync "$dir"; } 2>&1) || no disk "$(trouble "$why")"
	fi
	say left
}

mark() {
	exec 3<&0 </dev/null 2>/dev/null
	again=1 lack='' verb=run table=''
	[ "$off" = 0 ] || verb=ask # a folder is not made for that
	missing
	[ -n "$lack" ] || settle || lack=' folder'
	if [ -n "$lack" ]; then
		[ "$fence" = auto ] || no lacking $lack
		no plain $lack
	fi
	[ -e "$dir/marker.lock" ] || (umask 077; : >>"$dir/marker.lock")
	(exec 9>>"$dir/marker.lock") || no disk 'the lock of the marker cannot be opened'
	exec 9>>"$dir/marker.lock"
	busy=
	for turn in .01 .02 .05 .1 .2 .5 .5 .5; do
		if grab; then
			if [ "$off" = 1 ]; then leave; else claim; fi && exit 0
			flock -u 9
			busy=step
		fi
		sleep "$turn" || sleep 1
	done
	no busy $busy
}

mark
