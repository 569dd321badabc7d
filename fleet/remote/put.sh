# put: brings a file to this host, for the newest attempt that the host knows of. It goes
# in front of the last line of record.sh, of which it uses the lock and the names of records.
#
# The command of the request is the script of an upload, which is told what to do:
#
#   fetch   take the content beside its place; ends with 66, or 67 if the file is there
#   place   put what was fetched in its place
#   same    see to the mode of what is there
#   drop    leave nothing of it behind
#
# The lock is held to begin, when our token is noted, and to put the file in its place, which
# is all that an upload does; it is not held for the minutes in between. So a worker that was
# stopped in the middle keeps nobody from the host, and when it wakes up behind a newer
# attempt, at that or another job, it is refused.

# pass takes the lock, unless a newer attempt was seen, or a step is at work.
pass() {
	for turn in .01 .02 .05 .1 .2 .2 .2 .2 .5 .5; do
		if grab; then
			search
			clean
			return 0
		fi
		search
		if [ -n "$latest" ]; then
			olderThan "$latest" && no stale
			[ -e "$latest.end" ] || busy
		fi
		sleep "$turn" || sleep 1
	done
	busy
}

# put brings the file. What is said behind the mark is of the upload, and so is what we say.
put() {
	pass
	sign
	flock -u 9
	timeout -k 5 "$bound" sh -c '
		exec 2>&1 3<&- 9>&-
		printf "%s mark %s %s\n" "$0" "$$" "$PPID"
		exec sh -c "$1" sh fetch
	' "$nonce" "$text" <&3
	code=$?
	case $code in
	66) what=place ;;
	67) what=same ;;
	*) exit "$code" ;;
	esac
	no() {
		say no "$@"
		[ "$1" != stale ] || sh -c "$text" sh drop
		exit 1
	}
	pass
	sh -c "$text" sh "$what" 2>&1
	code=$?
	flock -u 9
	sweep
	exit "$code"
}
