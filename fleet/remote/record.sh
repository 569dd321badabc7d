# record: runs one step of a job on this host, at most once, and keeps its result.
#
# Nothing is installed. The text comes on stdin to a shell, behind a request of four lines,
# which that shell stores in the variables request, place, job and text:
#
#   verb fence key step token-high token-low since-high since-low again twice bound marks
#   the folder of the records
#   the job, for people
#   the command, for printf %b
#
# The script acts only at its last line, which is missing if the connection was
# cut.
#
#   verb    run, put (see put.sh), ask (never start anything), look (as ask, without waiting
#           for a step that runs), peek (as look, and write nothing) or stop
#   key     names the job; key and step name a record
#   token   of the attempt, in two halves of nine digits: some shells count to 2^31
#   since   no attempt of the job is older than this token
#   again   1: an earlier attempt may have started the step
#   twice   1: the step may run again if its earlier result is unknown
#   marks   1: the job has marked its redundancy group, see marker.sh
#
# The rest of stdin belongs to the command. Its output goes to stdout unchanged, between lines
# of this script, which begin with the nonce after a newline:
#
#   hello fenced | hello plain WHAT-IS-MISSING | began | attached TOKEN-THAT-BEGAN-IT
#   at BYTE                              (the following output begins at that byte)
#   mark PID PARENT                      (plain: output of the command follows, and no end)
#   lost full|quota|disk (the rest of the output could not be written)
#   end exit|timeout|stopped CODE OPEN PROCESSES-LEFT | end gone | end rebooted
#   no stale|marked JOB|busy SECONDS JOB|work SECONDS|untold|never|lacking WHAT|disk WHY
#   stopped gone|left PIDS|hidden|ended|none|unsure
#
# A record is a family of files, TOKEN.KEY.STEP.…; the first of them to exist is:
#
#   started  one line, on disk before the command begins: from then on it may have run
#   new      80 bytes reserved for the end; during the run they hold its session and start
#            time. 80 more bytes say whether a full disk has cut off the output
#   end      the result: new, overwritten and renamed, so that a full disk cannot prevent it
#   out.N    the output from byte N on: the head, and two pieces of the tail
#   drained  the output is complete, as far as it could be written
#   stop     somebody wanted to stop the step
#
# The watcher of a step and the step itself hold the lock; it is released when the end is
# written. Token and started line are one file: the newest name is the last token.

say() { printf '%s %s\n' "$nonce" "$*"; }

no() {
	say no "$@"
	exit 0
}

# missing lists the tools that the host lacks. Small systems have timeout and setsid, no flock.
missing() {
	lack=
	for tool in flock setsid timeout dd tail head wc cat mv rm ls mkdir sync sleep; do
		command -v "$tool" >/dev/null || lack="$lack $tool"
	done
	for file in /proc/sys/kernel/random/boot_id /proc/uptime "/proc/$$/stat"; do
		[ -r "$file" ] || lack="$lack $file"
	done
}

# ours reports whether $1 is a folder that we own and nobody else can write to.
ours() {
	[ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ] || return 1
	case $(ls -ldn "$1") in d????-??-*) ;; *) return 1 ;; esac
}

# lasting fails for a folder in memory, because it would lose the records at a reboot.
lasting() {
	case $(stat -f -c %T "$1") in tmpfs | ramfs) return 1 ;; esac
}

# settle chooses the folder. An existing one is used for ever, so that nobody has to look for
# a record in another. The user's own comes first: it exists only if the other was not ours.
settle() {
	own=${HOME:-}
	case $own in /*) own=$own/.local/state/muster-record ;; *) own= ;; esac
	for dir in "$own" "$place"; do
		if [ -n "$dir" ] && ours "$dir"; then
			[ -e "$dir/born" ] && return 0
			lasting "$dir" || continue
			bear
			return 0
		fi
	done
	case $verb in run | put) ;; *) return 1 ;; esac
	for dir in "$place" "$own"; do
		[ -n "$dir" ] && [ ! -e "$dir" ] && [ ! -L "$dir" ] || continue
		(umask 077; mkdir -p "$dir") && ours "$dir" || continue
		if lasting "$dir"; then
			bear
			return 0
		fi
		rmdir "$dir"
	done
	return 1
}

# bear notes since when there are records, and whose job began them: a missing record of an
# older job does not prove that the job never ran.
bear() {
	first=$key
	[ "$again" = 0 ] || first=-
	(umask 077; set -C; printf '%s %s %s\n' "$hi" "$lo" "$first" >"$dir/born")
}

# proof reports whether a missing record proves that the step never ran. It does not if a
# sweep may have removed the record.
proof() {
	[ "$again" = 1 ] || return 0
	swept=0
	read -r swept <"$dir/swept"
	[ $((1${swept:-0} - 1$shi)) -le 604 ] || return 1
	bhi='' blo='' first=''
	read -r bhi blo first <"$dir/born"
	[ "$first" != "$key" ] || return 0
	[ -n "$first" ] && { ! older "$shi" "$slo" "$bhi" "$blo" || earlier; }
}

# earlier reports whether there is a record of an earlier step of our job: all attempts at our
# step came after it, and would have their records in the same folder. A thousand more is a
# later try of a step.
earlier() {
	for file in "$dir"/*."$key".*.started; do
		[ -e "$file" ] || return 1
		file=${file%.started}
		[ $((${file##*.} % 1000)) -ge $((step % 1000)) ] || ! recall "$file" || return 0
	done
	return 1
}

# older reports whether token $1 $2 is older than $3 $4.
older() {
	[ "$1" -lt "$3" ] || { [ "$1" -eq "$3" ] && [ "$2" -lt "$4" ]; }
}

# olderThan reports whether our token is older than that of record $1.
olderThan() {
	token=${1##*/}
	token=${token%%.*}
	older "$hi" "$lo" "${token%?????????}" "${token#?????????}"
}

# search finds the newest record of all, and the record of our step.
search() {
	newest "$dir"/*.started
	latest=$found
	newest "$dir"/*."$key.$step.started"
	mine=$found
}

newest() {
	eval "found=\${$#}"
	[ -e "$found" ] || found=
	found=${found%.started}
}

# recall reads the started line of record $1. An incomplete line was never on disk, and its
# command never began.
recall() {
	boot='' began='' limit='' who='' whole=''
	read -r boot began limit who whole <"$1.started"
	[ "$whole" = . ]
}

# runs reports whether a process of the step in record $1 is alive although nobody watches it.
# Another process may have its number by now; the start time distinguishes them.
runs() {
	word='' sid='' since=''
	read -r word sid since <"$1.new"
	read -r now </proc/sys/kernel/random/boot_id
	[ "$word" = runs ] && recall "$1" && [ "$now" = "$boot" ] || return 1
	if read -r line <"/proc/$sid/stat"; then
		set -- ${line##*) }
		[ "${20}" = "$since" ] || return 1
	fi
	[ -n "$(session "$sid")" ]
}

# session lists the processes in session $1. ps is faster than reading each of them.
session() {
	if [ -n "$table" ]; then
		$table | while read -r pid sid stat; do
			case $sid/$stat in "$1"/[ZX]*) ;; "$1"/*) printf '%s ' "$pid" ;; esac
		done
		return
	fi
	for stat in /proc/[0-9]*/stat; do
		read -r line <"$stat" || continue
		set -- "$1" ${line##*) }
		case $5/$2 in "$1"/[ZX]) ;; "$1"/*) printf '%s ' "${line%% *}" ;; esac
	done
}

grab() { flock -n 9; }

# decide repeats its look at the records until it is clear what to do.
decide() {
	for turn in .01 .02 .05 .1 .2 .2 .2 .2 .5 .5; do
		free=
		grab && free=1
		search
		if [ -n "$mine" ] && ! recall "$mine"; then
			if [ -n "$free" ] && [ "$verb" = run ]; then
				rm -f "$mine".*
				search
			else
				mine=
			fi
		fi
		if [ -n "$mine" ]; then
			known
		elif [ -n "$free" ]; then
			unknown
		elif [ -n "$latest" ] && [ ! -e "$latest.end" ]; then
			busy
		fi
		sleep "$turn" || sleep 1 # it has just ended, or is just beginning
	done
	busy
}

# known handles a step that has a record.
known() {
	name=$mine
	olderThan "$mine" && no stale
	began_by=${mine##*/}
	began_by=${began_by%%.*}
	if [ -e "$name.end" ]; then
		[ -z "$free" ] || flock -u 9
		say attached "$began_by"
		written
		conclude
	fi
	if [ -z "$free" ] && [ "$mine" = "$latest" ] || runs "$mine"; then
		[ -z "$free" ] || flock -u 9
		case $verb in look | peek) atWork ;; esac
		say attached "$began_by"
		accompany
	fi
	[ -n "$free" ] || return 0 # only who has the lock can know that it is dead
	if [ "$verb" = run ] && [ "$twice" = 1 ] && ! same; then
		clean
		start
	fi
	say attached "$began_by"
	conclude
}

# atWork says how long our step may still run.
atWork() {
	recall "$mine"
	read -r up rest </proc/uptime
	no work $((began + limit - ${up%.*}))
}

same() {
	token=${mine##*/}
	[ "${token%%.*}" = "$hi$lo" ]
}

# clean refuses attempts that are too late, and those that are too early, because the last
# step may still run although nobody watches it.
clean() {
	[ -n "$latest" ] || return 0
	olderThan "$latest" && no stale
	[ -e "$latest.end" ] || ! runs "$latest" || busy
}

# unknown handles a step without a record; the caller holds the lock.
unknown() {
	clean
	if ! proof; then
		[ "$twice" = 1 ] && [ "$verb" = run ] || no untold
	fi
	case $verb in
	run) start ;;
	peek) no never ;;
	esac
	forbid
}

# forbid says that the step never began, and makes sure that this stays true.
forbid() {
	sign
	flock -u 9
	no never
}

# sign notes our token: after that, attempts with an older one are refused.
sign() {
	name=$dir/$hi$lo.-.-
	[ ! -e "$name.end" ] || return 0
	why=$({
		umask 077
		: >"$name.started" && : >"$name.end" && sync "$name.started" "$name.end" "$dir"
	} 2>&1) || no disk "$(trouble "$why")"
}

# trouble explains why a file could not be written; $1 is the message of a shell. Some shells
# say "I/O error" for everything; then dd tries the same and gives the reason.
trouble() {
	case ${1##*: } in
	'' | 'I/O error')
		said=$(printf '%4096s' . | LC_ALL=C dd bs=4096 2>&1 >"$dir/try.$$")
		rm -f "$dir/try.$$"
		case $said in *': '*) ;; *) said=$1 ;; esac
		said=${said%%records in*}
		set -- "${said%
*}" # what is in front of the last line: dd says how much it has read
		;;
	esac
	set -- "${1##*: }"
	echo "${1:-it cannot be written}"
}

busy() {
	recall "$latest" || no busy 1 -
	read -r up rest </proc/uptime
	no busy $((began + limit - ${up%.*})) "$who"
}

# carried reads the marker of this host. An unreadable one counts as somebody else's.
carried() {
	mkey='' mhi='' mlo='' muhi='' mulo='' mgroup='' mhost='' mjob='' whole=''
	[ -e "$dir/marker" ] || return 1
	read -r mkey mhi mlo muhi mulo mgroup mhost mjob whole <"$dir/marker"
	[ "$whole" = . ] || mkey=- mhi=0 mlo=0 muhi=999999999 mulo=999999999 mgroup=- mhost=- mjob=-
}
# overtaken refuses a step if another job has replaced the marker of its job since, because
# that job may disturb another member. A marker that is older than this attempt is void.
overtaken() {
	carried && [ "$mkey" != "$key" ] || return 0
	[ "$mkey" = - ] || older "$hi" "$lo" "$mhi" "$mlo" || return 0
	no marked "$mjob"
}

# start runs the step.
start() {
	[ "$marks" = 0 ] || overtaken
	name=$dir/$hi$lo.$key.$step
	read -r boot </proc/sys/kernel/random/boot_id
	read -r up rest </proc/uptime
	up=${up%.*}
	[ ! -e "$name.new" ] || rm -f "$name".* # of a try that came to nothing
	why=$(
		umask 077
		set -C
		{
			printf '%-79s\n%-79s\n' free whole >"$name.new" &&
				printf '%s %s %s %s .\n' "$boot" "$up" "$bound" "$job" >"$name.started" &&
				sync "$name.new" "$name.started" "$dir"
		} 2>&1
	) || {
		why=$(trouble "$why")
		rm -f "$name".*
		no disk "$why"
	}
	# Opened before it can be renamed, for the process that keeps the output.
	exec 8<>"$name.new"
	# The processes that must survive print nothing from here on, because nobody may read it.
	{ watch 4>&1 >/dev/null; } | follow 9>&- 8>&- 3<&-
	exit 0
}

# watch sees a step to its end, even if nobody waits for it any more. It sets traps because
# the command does not inherit them; it would inherit ignored signals.
watch() {
	trap : HUP INT TERM PIPE
	{
		exec 8>&-
		perform
		code=$?
		exec >/dev/null 3<&-
		finish
		sweep 4>&- 9>&- &
	} | keep 3<&- 9>&-
}

# perform runs the command in a session of its own.
perform() {
	setsid timeout -k 5 "$bound" sh -c '
		exec 4>&- 2>&1
		read -r muster <"/proc/$$/stat"
		set -- "$1" "$2" ${muster##*) }
		read -r muster <"/proc/$6/stat"
		set -- "$1" "$2" "$6" ${muster##*) }
		printf "%-79s\n" "runs $3 ${23}" 1<>"$1.new"
		unset muster
		eval "set --
$2"
	' sh "$name" "$text" <&3 3<&-
}

# finish records the end. timeout ends its own child and the group; finish ends the remaining
# processes of the session.
finish() {
	word='' sid='' since='' left='' how=exit
	read -r word sid since <"$name.new"
	if [ -e "$name.stop" ]; then
		how=stopped
	else
		read -r now rest </proc/uptime
		case $code in
		124 | 137 | 143) [ $((${now%.*} - up)) -lt "$bound" ] || how=timeout ;;
		esac
	fi
	if [ "$how" = timeout ]; then
		patient
		[ "$code" != 137 ] || soft=
		quell
	fi
	printf '%-79s\n' "$how $code $left" 1<>"$name.new" && mv -f "$name.new" "$name.end"
	flock -u 9 4>&- & # what a daemon has inherited as well
}

# patient sets the pauses. Some sleep programs accept whole seconds only.
patient() {
	soft='.05 .1 .2 .4 .4 .4 .5' hard='.05 .1 .3 .5'
	sleep .01 || soft='1 1' hard=1
	table='ps -A -o pid= -o sid= -o stat='
	$table >/dev/null || table=
}

# quell ends the processes in session sid after some patience, and stores in left those that
# it could not end.
quell() {
	for pause in $soft; do
		kill -0 "-$sid" || [ -n "$(session "$sid")" ] || break
		sleep "$pause"
	done
	for pause in $hard; do
		left=$(session "$sid")
		[ -n "$left" ] || break
		kill -KILL $left
		sleep "$pause"
	done
	[ -z "$left" ] || left=$(session "$sid")
}

# keep writes the output to the disk, in pieces, and removes those in the middle. It never
# stops reading, because that would stop the command.
keep() {
	trap : HUP INT TERM PIPE
	umask 077
	base=0 older=
	while :; do
		said=$(LC_ALL=C dd bs=8192 count=16 2>&1 >>"$name.out.$base") || {
			cutOff
			cat >/dev/null
			break
		}
		said=${said%% records in*} # some warn before they count
		[ $((${said##*[!0-9+]})) -eq 16 ] || break
		size=$(($(wc -c <"$name.out.$base")))
		[ "$size" -ge 131072 ] || continue
		if [ "$base" -gt 0 ]; then
			[ -z "$older" ] || rm -f "$name.out.$older"
			older=$base
		fi
		base=$((base + size))
	done
	: >"$name.drained"
}

# cutOff notes in the second line of new, whatever its name is by now, that further output is
# lost. The space of that line is already on disk, so that a full disk cannot prevent it.
cutOff() {
	why=disk
	case $said in
	*'No space'*) why=full ;;
	*[Qq]uota*) why=quota ;;
	esac
	read -r line <&8
	printf '%-79s\n' "lost $why" >&8
}

# follow reports that our step began, and its output, until the end. Its stdin ends when no
# process watches or keeps any more. Output of a daemon that the step left behind is ignored.
follow() {
	say began
	over=
	until timeout 1 cat >/dev/null; do
		[ -z "$over" ] || break
		[ ! -e "$name.end" ] || over=1
		emit live
	done
	conclude
}

# accompany does the same for a step that another attempt started.
accompany() {
	while [ ! -e "$name.end" ]; do
		emit live
		sleep 1
		if grab; then
			flock -u 9
			[ -e "$name.end" ] || runs "$name" || break
		fi
	done
	written
	conclude
}

# written waits until all output is in the file, which may be after the end. A remaining
# process may hold the output open for long, so it does not wait for ever.
written() {
	for turn in .02 .05 .1 .2 .2 .5 .5 .5; do
		[ ! -e "$name.drained" ] || return 0
		sleep "$turn" || sleep 1
	done
}

# conclude reports the end.
conclude() {
	emit all
	how='' code='' left='' kept='' why=''
	{ read -r how code left; read -r kept why; } <"$name.end"
	[ "$kept" != lost ] || say lost "$why"
	case $how in
	exit | timeout | stopped) ;;
	*)
		read -r now </proc/sys/kernel/random/boot_id
		recall "$name"
		[ "$now" = "$boot" ] && say end gone || say end rebooted
		exit 0
		;;
	esac
	open=1
	[ ! -e "$name.drained" ] || open=0
	say end "$how" "$code" "$open" $left
	[ "$open" = 0 ] || kill -KILL $$ # else it would wait for what was left behind
	exit 0
}

# emit prints the output since the last time: from byte off of piece base on. A piece does
# not grow any more once another one follows.
emit() {
	while :; do
		piece=$name.out.$base
		behind
		if [ -s "$piece" ] && [ "$1 $count" = 'all 1' ]; then
			tail -c "+$((off + 1))" "$piece"
		elif [ -s "$piece" ]; then
			size=$(($(wc -c <"$piece")))
			if [ "$size" -gt "$off" ]; then
				tail -c "+$((off + 1))" "$piece" | head -c "$((size - off))"
				off=$size
				say at "$((base + off))" # what reads waits for what may be a line of ours
			fi
		fi
		[ -n "$next" ] || return 0
		say at "$next"
		base=$next off=0
	done
}

# behind finds the next piece, and counts all pieces.
behind() {
	next='' count=0
	for file in "$name".out.*; do
		at=${file##*.}
		[ "$at" != '*' ] || return 0
		count=$((count + 1))
		[ "$at" -gt "$base" ] || continue
		[ -n "$next" ] && [ "$at" -ge "$next" ] || next=$at
	done
}

# sweep removes records of steps that ended more than a week ago, by the clock of the tokens:
# once a day, the oldest first, and a limited number.
sweep() {
	swept=0
	read -r swept <"$dir/swept"
	[ $((1$hi - 1${swept:-0})) -ge 86 ] || return
	# In its place, for the disk may be full; and on the disk before anything goes, see proof.
	(umask 077; printf '%s\n' "$hi" 1<>"$dir/swept") && sync "$dir/swept" || return
	count=0
	for file in "$dir"/*.end; do
		age=${file##*/}
		age=${age%"${age#?????????}"}
		[ "$count" -lt 500 ] && [ $((1$hi - 1$age)) -gt 604 ] || break
		rm -f "${file%.end}".*
		count=$((count + 1))
	done
}

# tell sends TERM once to the processes in session sid. It spares timeout, which would pass
# the signal on: a trap would run twice, and the second signal would kill its cleanup.
tell() {
	all=$(session "$sid") told=
	for pid in $all; do
		read -r line <"/proc/$pid/stat" || continue
		case $line in "$pid (timeout) "*) ;; *) told="$told $pid" ;; esac
	done
	kill -TERM ${told:-$all}
}

# halt ends a running step and checks that it ended.
halt() {
	patient
	search
	name=$mine
	[ -n "$name" ] || { say stopped none; exit 0; }
	[ ! -e "$name.end" ] || { say stopped ended; exit 0; }
	for pause in $hard; do
		read -r word sid since <"$name.new"
		[ "$word" != free ] || sleep "$pause"
	done
	if ! runs "$name"; then
		[ -e "$name.end" ] && say stopped ended || say stopped unsure
		exit 0
	fi
	(umask 077; : >"$name.stop")
	tell
	quell
	case $(kill -0 "-$sid" 2>&1) in *ermitted*) say stopped hidden; exit 0 ;; esac
	[ -n "$left" ] && say stopped left $left || say stopped gone
	exit 0
}

# plain runs the step without a record.
plain() {
	[ "$again" = 0 ] || [ "$twice" = 1 ] || no untold
	case $verb in run | put) ;; *) no untold ;; esac
	exec timeout -k 5 "$bound" sh -c '
		exec 2>&1 3<&-
		printf "%s mark %s %s\n" "$0" "$$" "$PPID"
		exec sh -c "$1"
	' "$nonce" "$text" <&3
}

# leave continues outside of the session if logind kills the processes of an ended session,
# because the step would otherwise end with its connection. It tries first, and stays if that
# fails. Since a second try may still fail, the shell out there reports that it began, and does
# nothing if nobody reads that, so that exactly one of the two continues.
leave() {
	inSession && kills || return
	manager=--system
	[ "$(id -u)" = 0 ] || manager=--user
	scope="systemd-run $manager --scope --quiet"
	timeout 10 $scope --expand-environment=no true >/dev/null 2>&1 </dev/null
	case $? in
	0) scope="$scope --expand-environment=no" ;; # else $ will be for systemd, says 254
	124) return ;;
	*) timeout 10 $scope true >/dev/null 2>&1 </dev/null || return ;;
	esac
	exec 6>&1
	said=$(
		$scope --description="muster: $job" sh -c '
			: muster-record
			echo began >&5 || exit
			exec 5>&-
			nonce=$1 request=$2 place=$3 job=$4 text=$5 record=$6
			eval "$record"
		' sh "$nonce" "$request" "$place" "$job" "$text" "$record" 5>&1 >&6 6>&-
		echo "$?"
	)
	exec 6>&-
	case $said in began*) exit "${said##*[!0-9]}" ;; esac
}

inSession() {
	while read -r line; do
		case $line in */session-*.scope) return 0 ;; esac
	done </proc/self/cgroup
	return 1
}

# kills reports whether logind is configured to kill. The last setting counts.
kills() {
	word=
	for file in /usr/lib/systemd/logind.conf /etc/systemd/logind.conf \
		/usr/lib/systemd/logind.conf.d/*.conf /run/systemd/logind.conf.d/*.conf \
		/etc/systemd/logind.conf.d/*.conf; do
		[ -r "$file" ] || continue
		while read -r line; do
			case $line in KillUserProcesses*=*) word=${line#*=} ;; esac
		done <"$file"
	done
	case ${word# } in [yYtT1]* | [oO][nN]) ;; *) return 1 ;; esac
}

main() {
	case $request in "run "*) leave 2>/dev/null ;; esac
	exec 3<&0 </dev/null 2>/dev/null # what the shell itself says is not of the command
	set -- $request
	verb=$1 fence=$2 key=$3 step=$4 hi=$5 lo=$6 shi=$7 slo=$8 again=$9
	shift 9
	twice=$1 bound=$2 marks=$3
	case $text in *\\*) text=$(printf %b "$text") ;; esac
	base=0 off=0 table=

	missing
	[ -n "$lack" ] || settle || lack=' folder'
	if [ -n "$lack" ]; then
		[ "$fence" = auto ] || no lacking $lack
		say hello plain $lack
		plain
	fi
	say hello fenced
	if [ "$verb" = stop ]; then halt; fi
	[ -e "$dir/lock" ] || (umask 077; : >>"$dir/lock")
	if (exec 9>>"$dir/lock"); then # where the disk is read-only some tests say yes all the same
		exec 9>>"$dir/lock"
	elif [ -r "$dir/lock" ]; then
		exec 9<"$dir/lock" # a disk that is read-only now: start says so
	else
		no disk 'the lock cannot be opened'
	fi
	if [ "$verb" = put ]; then put; fi
	decide
}

main
