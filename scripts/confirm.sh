# confirm: a change that this host takes back by itself, unless it is confirmed in time.
#
# It stands behind assignments of these variables:
#
#   verb     arm (guard, arm, apply), prove, confirm, back or state
#   id       names the change; all that is known of it is in $MUSTER_DIR, of this name
#   within   seconds until it is taken back
#   job      whose change it is, for people
#   place    the folder in which the host remembers; else that of the user
#   guard apply rollback prove keep    shell texts; empty: there is none
#
# The folder has one of these, and a rename decides which, so of confirming and taking back
# exactly one comes about:
#
#   armed        the change may be made, and is not confirmed: boot id, uptime, within, job
#   confirmed    it stays
#   rolledback   it is taken back, or was: then there is also done, with an exit code
#
# The last line that is said begins with muster-confirm: and tells what there is:
#   none guard CODE | none | busy LEFT JOB | armed LEFT | proof CODE LEFT |
#   confirmed CODE | rolledback CODE WHY

say() { printf 'muster-confirm: %s\n' "$*"; }

# settleIn sets MUSTER_DIR to where the change is kept, or is to be.
settleIn() {
	umask 077
	home=${HOME:-/nonexistent}/.local/state/muster-record
	for base in "$place" "$home"; do
		MUSTER_DIR=$base/confirm/$id
		[ ! -d "$MUSTER_DIR" ] || return 0
	done
	for base in "$place" "$home"; do
		MUSTER_DIR=$base/confirm/$id
		[ "$verb" = arm ] || return 1
		! mkdir -p "$base/confirm" 2> /dev/null || [ ! -O "$base/confirm" ] ||
			! mkdir "$MUSTER_DIR" 2> /dev/null || return 0
	done
	echo 'there is no folder that keeps what to go back to' >&2
	return 1
}

# now reads what time and which boot it is.
now() {
	read -r boot < /proc/sys/kernel/random/boot_id
	read -r up rest < /proc/uptime
	up=${up%%.*}
}

# others looks for a change that is neither confirmed nor taken back: one cannot go back
# to what another one may take away. What was left half way is taken back first.
others() {
	mine=$MUSTER_DIR
	for other in "${mine%/*}"/*/armed; do
		[ -e "$other" ] && [ "$other" != "$mine/armed" ] || continue
		MUSTER_DIR=${other%/armed}
		settle 2> /dev/null
		MUSTER_DIR=$mine
		[ -e "$other" ] || continue
		rmdir "$mine" 2> /dev/null
		say busy "$left" "$j"
		exit 0
	done
}

# run runs a text that was written down.
run() { [ ! -s "$MUSTER_DIR/$1.sh" ] || sh "$MUSTER_DIR/$1.sh" < /dev/null; }

# roll takes the change back, and is for whoever has made armed rolledback.
roll() {
	sh "$MUSTER_DIR/rollback.sh" > "$MUSTER_DIR/rollback.out" 2>&1 < /dev/null
	echo $? > "$MUSTER_DIR/done.new"
	mv "$MUSTER_DIR/done.new" "$MUSTER_DIR/done"
}

take() { mv "$MUSTER_DIR/armed" "$MUSTER_DIR/$1" 2> /dev/null; }

# unarmed ends it where what takes the change back cannot be written down: on a full disk
# that would be a rollback which does nothing.
unarmed() {
	echo "what to go back to cannot be written to $MUSTER_DIR: is its disk full? nothing was armed" >&2
	rm -rf "$MUSTER_DIR"
	say none guard 1
	exit 0
}

# arm has the change taken back in time, by something that is not part of this session.
arm() {
	bad=
	for text in guard apply rollback prove keep; do
		eval "body=\$$text"
		printf '%s\n' "$body" > "$MUSTER_DIR/$text.sh" || bad=1
	done
	cat > "$MUSTER_DIR/timer.sh" <<-END || bad=1
		[ -z "\$1" ] || sleep "\$1"
		cd "$MUSTER_DIR" && mv armed rolledback 2> /dev/null || exit 0
		export MUSTER_DIR="$MUSTER_DIR"
		sh rollback.sh > rollback.out 2>&1 < /dev/null
		echo \$? > done.new
		mv done.new done
	END
	[ -z "$bad" ] || unarmed
	run guard
	code=$?
	if [ "$code" -ne 0 ]; then
		rm -rf "$MUSTER_DIR"
		say none guard "$code"
		exit 0
	fi
	now
	printf '%s %s %s %s\n' "$boot" "$up" "$within" "$job" > "$MUSTER_DIR/armed.new" || unarmed
	# Without power a file of which only the name is on disk would be empty: a rollback
	# that does nothing.
	lasting "$MUSTER_DIR"/*
	mv "$MUSTER_DIR/armed.new" "$MUSTER_DIR/armed" || unarmed
	lasting "$MUSTER_DIR" "${MUSTER_DIR%/*}"
	if bySystemd && systemd-run "$manager" --quiet --collect --unit="muster-confirm-$id" \
		--on-active="$within" --timer-property=AccuracySec=1s \
		--setenv="PATH=$PATH" --setenv="HOME=${HOME:-/}" sh "$MUSTER_DIR/timer.sh" ''; then
		return
	fi
	far=
	! command -v setsid > /dev/null || far=setsid
	[ -n "$far" ] || far=nohup
	$far sh "$MUSTER_DIR/timer.sh" "$within" > /dev/null 2>&1 < /dev/null 9>&- &
}

# bySystemd tells whether systemd can take it back. Of a user who is not root that is the
# user's own manager, which is there for good only with linger.
bySystemd() {
	[ -d /run/systemd/system ] && command -v systemd-run > /dev/null || return 1
	manager=--system
	[ "$(id -u)" != 0 ] || return 0
	manager=--user
	[ -e "/var/lib/systemd/linger/$(id -un)" ]
}

# lasting has files and folders on disk before it goes on. Some can only have all.
lasting() { sync "$@" 2> /dev/null || sync; }

# settle takes back what nobody takes back any more: the host has booted since, or the
# timer was ended.
settle() {
	b='' u='' w='' j=''
	read -r b u w j < "$MUSTER_DIR/armed" || return 0
	left=$((u + w - up))
	if [ "$b" != "$boot" ] || [ "$left" -lt -15 ]; then
		! take rolledback || roll
	fi
}

# state tells what there is. What is being taken back is waited for, for a while.
state() {
	left=0
	now
	[ ! -e "$MUSTER_DIR/armed" ] || settle 2> /dev/null
	if [ -e "$MUSTER_DIR/confirmed" ]; then
		say confirmed 0
	elif [ -e "$MUSTER_DIR/rolledback" ]; then
		for turn in 1 1 1 2 5 5; do
			[ ! -e "$MUSTER_DIR/done" ] || break
			sleep "$turn"
		done
		code=
		! read -r code < "$MUSTER_DIR/done" || [ "$code" = 0 ] || cat "$MUSTER_DIR/rollback.out"
		why=
		[ ! -e "$MUSTER_DIR/why" ] || read -r why < "$MUSTER_DIR/why"
		say rolledback "${code:--}" "$why"
	elif [ -e "$MUSTER_DIR/armed" ]; then
		say armed "$left"
	else
		say none
	fi
}

main() {
	now
	if ! settleIn; then
		[ "$verb" != arm ] || exit 1
		say none
		return
	fi
	export MUSTER_DIR
	case $verb in
	arm)
		others
		[ -e "$MUSTER_DIR/armed" ] || [ -e "$MUSTER_DIR/confirmed" ] ||
			[ -e "$MUSTER_DIR/rolledback" ] || {
			arm
			run apply
			code=$?
			if [ "$code" -ne 0 ]; then
				echo "apply $code" > "$MUSTER_DIR/why"
				! take rolledback || roll
			fi
		}
		state
		;;
	prove)
		state > "$MUSTER_DIR/state"
		case $(cat "$MUSTER_DIR/state") in
		'muster-confirm: armed '*)
			run prove
			code=$?
			now
			say proof "$code" "$((u + w - up))"
			;;
		*) cat "$MUSTER_DIR/state" ;;
		esac
		;;
	confirm)
		take confirmed
		if [ -e "$MUSTER_DIR/confirmed" ]; then
			lasting "$MUSTER_DIR" # else the next boot would find it armed
			! bySystemd || systemctl "$manager" stop "muster-confirm-$id.timer" 2> /dev/null
			run keep
			say confirmed "$?"
		else
			state
		fi
		;;
	back)
		! take rolledback || roll
		state
		;;
	*) state ;;
	esac
}

main
