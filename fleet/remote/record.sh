# record: does one step of a job on this host, at most once, and keeps what became of it.
#
# Nothing of it is installed. It comes on stdin to a shell, behind a request of four lines,
# which that shell keeps in the variables request, place, job and text:
#
#   verb fence key step token-high token-low since-high since-low again twice bound marks
#   the folder of the records
#   the job, for people
#   the command, for printf %b
#
# Nothing is done before the last line of this text, which is not there if the connection
# was cut.
#
#   verb    run, put (see put.sh), ask (never start anything), look (the same, and never
#           wait for what is at work), peek (the same, and write nothing) or stop
#   key     names the job; key and step name a record
#   token   of the attempt, in two halves of nine digits: some shells count to 2^31
#   since   no attempt at the job is older than this token
#   again   1: an earlier attempt may have started the step
#   twice   1: the step may run again if it is not known how it went before
#   marks   1: the job has marked its redundancy group, see marker.sh
#
# What is left of stdin is the command's. What it says goes to stdout as it is, between
# lines of our own, which begin with the nonce behind a newline:
#
#   hello fenced | hello plain WHAT-IS-MISSING | began | attached TOKEN-THAT-BEGAN-IT
#   at BYTE                              (what comes next was said from there on)
#   mark PID PARENT                      (plain: what comes next is the command, no end)
#   lost full|quota|disk (what it said behind what is here could not be written)
#   end exit|timeout|stopped CODE OPEN PROCESSES-LEFT | end gone | end rebooted
#   no stale|marked JOB|busy SECONDS JOB|work SECONDS|untold|never|lacking WHAT|disk WHY
#   stopped gone|left PIDS|hidden|ended|none|unsure
#
# A record is a family of files, TOKEN.KEY.STEP.…, of which the oldest is the first:
#
#   started  one line, on disk before the command begins: it may have run from now on
#   new      80 bytes kept free for the end; while it runs its session and start time. And
#            80 more: whether a full disk has cut off what it said
#   end      how it ended: new, written over and renamed, so that a full disk is no matter
#   out.N    what it said from byte N on: the head, and two pieces of the tail
#   drained  all that it said is in there, as far as it could be written
#   stop     somebody wanted it to stop
#
# The lock is held by whoever watches a step and by the step; it is given back when the
# end is written. Token and started line are one file: the newest name is the last token.

say() { printf '%s %s\n' "$nonce" "$*"; }

no() {
	say no "$@"
	exit 0
}

# What the host lacks. Small systems have timeout and setsid, and no flock.
missing() {
	lack=
	for tool in flock setsid timeout dd tail head wc cat mv rm ls mkdir sync sleep; do
		command -v "$tool" >/dev/null || lack="$lack $tool"
	done
	for file in /proc/sys/kernel/random/boot_id /proc/uptime "/proc/$$/stat"; do
		[ -r "$file" ] || lack="$lack $file"
	done
}

# ours tells whether $1 is a folder that we own and nobody else can write to.
ours() {
	[ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ] || return 1
	case $(ls -ldn "$1") in d????-??-*) ;; *) return 1 ;; esac
}

# What is in memory only does not outlive a boot, and could not tell after it.
lasting() {
	case $(stat -f -c %T "$1") in tmpfs | ramfs) return 1 ;; esac
}

# A folder that exists is used for good: nobody must look for a record in another one.
# Of two it is that of the user, who would not have it if the first had been ours.
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

# bear notes since when there are records, and whose job began them: no record of an
# older job is no proof that it never ran.
bear() {
	first=$key
	[ "$again" = 0 ] || first=-
	(umask 077; set -C; printf '%s %s %s\n' "$hi" "$lo" "$first" >"$dir/born")
}

# proof tells whether a record that is not there shows that the step never ran. It does not
# if a sweep may have taken it.
proof() {
	[ "$again" = 1 ] || return 0
	swept=0
	read -r swept <"$dir/swept"
	[ $((1${swept:-0} - 1$shi)) -le 604 ] || return 1
	bhi='' blo='' first=''
	read -r bhi blo first <"$dir/born"
	[ "$first" != "$key" ] || return 0
	[ -n "$first" ] && ! older "$shi" "$slo" "$bhi" "$blo"
}

# older tells whether token $1 $2 is older than $3 $4.
older() {
	[ "$1" -lt "$3" ] || { [ "$1" -eq "$3" ] && [ "$2" -lt "$4" ]; }
}

# olderThan tells whether our token is older than that of record $1.
olderThan() {
	token=${1##*/}
	token=${token%%.*}
	older "$hi" "$lo" "${token%?????????}" "${token#?????????}"
}

# search finds the newest record of all, and that of our step.
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

# recall reads the started line of record $1. One that is not whole was never on disk,
# and its command never began.
recall() {
	boot='' began='' limit='' who='' whole=''
	read -r boot began limit who whole <"$1.started"
	[ "$whole" = . ]
}

# runs tells whether something of the step of record $1 is alive though nobody watches
# it. Its number may belong to others by now: the start time tells.
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

# session lists what lives in session $1. ps is quicker than to read of each process.
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

# decide looks until it is known what is to be done.
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

# known is about a step of which there is a record.
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

# atWork says for how long our step may be at work yet.
atWork() {
	recall "$mine"
	read -r up rest </proc/uptime
	no work $((began + limit - ${up%.*}))
}

same() {
	token=${mine##*/}
	[ "${token%%.*}" = "$hi$lo" ]
}

# clean ends all for whom it is too late, and for whom it is too early: nobody may watch
# the last step any more, and it may run all the same.
clean() {
	[ -n "$latest" ] || return 0
	olderThan "$latest" && no stale
	[ -e "$latest.end" ] || ! runs "$latest" || busy
}

# unknown is about a step of which there is no record, with the lock in hand.
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

# forbid says that the step never began, and sees to it that it stays so.
forbid() {
	sign
	flock -u 9
	no never
}

# sign notes our token: whoever is on the way with an older one comes too late behind it.
sign() {
	name=$dir/$hi$lo.-.-
	[ ! -e "$name.end" ] || return 0
	why=$({
		umask 077
		: >"$name.started" && : >"$name.end" && sync "$name.started" "$name.end" "$dir"
	} 2>&1) || no disk "$(trouble "$why")"
}

# trouble says why a file could not be written, of which a shell said $1. Some have the same
# words for everything, "I/O error": then it is tried by somebody who knows more.
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

# carried reads the marker that is there. One that cannot be read is somebody's.
carried() {
	mkey='' mhi='' mlo='' muhi='' mulo='' mgroup='' mhost='' mjob='' whole=''
	[ -e "$dir/marker" ] || return 1
	read -r mkey mhi mlo muhi mulo mgroup mhost mjob whole <"$dir/marker"
	[ "$whole" = . ] || mkey=- mhi=0 mlo=0 muhi=999999999 mulo=999999999 mgroup=- mhost=- mjob=-
}

# overtaken refuses a step of a job whose marker another one has replaced since: that may
# be disturbing another member. Markers of before are of nobody who is still at work.
overtaken() {
	carried && [ "$mkey" != "$key" ] || return 0
	[ "$mkey" = - ] || older "$hi" "$lo" "$mhi" "$mlo" || return 0
	no marked "$mjob"
}

# start does the step.
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
	# Opened before it can be renamed, for who keeps what is said.
	exec 8<>"$name.new"
	# From here on nothing is said by those who must live: nobody may be there to hear it.
	{ watch 4>&1 >/dev/null; } | follow 9>&- 8>&- 3<&-
	exit 0
}

# watch sees a step to its end, whatever becomes of those who want to know of it. A trap
# is not handed on to the command; a signal that is ignored would be.
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

# perform is the command, in a session of its own.
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

# finish writes the end down. timeout ends its own child and what is in its group, and
# what is left of the session is ended here.
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

# patient says how long to wait for what. Some can only count whole seconds.
patient() {
	soft='.05 .1 .2 .4 .4 .4 .5' hard='.05 .1 .3 .5'
	sleep .01 || soft='1 1' hard=1
	table='ps -A -o pid= -o sid= -o stat='
	$table >/dev/null || table=
}

# quell ends what lives in session sid, after some patience, and leaves in left what it
# could not end.
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

# keep writes what comes in to the disk, in pieces of which those in the middle go. It
# never stops reading: that would stop the command.
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

# cutOff notes in the second line of new, whatever its name is by now, that what is said from
# here on is lost. That line is on the disk already, so that a full one is no matter.
cutOff() {
	why=disk
	case $said in
	*'No space'*) why=full ;;
	*[Qq]uota*) why=quota ;;
	esac
	read -r line <&8
	printf '%-79s\n' "lost $why" >&8
}

# follow says that a step of ours began, and what it says, until it is over. Its stdin ends when nobody
# watches or keeps any more. What a daemon says that it left behind does not count.
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

# accompany does the same for a step of somebody else.
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

# written waits until all that was said is in the file, which may come after the end. What
# was left behind may hold it open for long.
written() {
	for turn in .02 .05 .1 .2 .2 .5 .5 .5; do
		[ ! -e "$name.drained" ] || return 0
		sleep "$turn" || sleep 1
	done
}

# conclude says how it ended.
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

# emit says what was said since the last time: from byte off of piece base on. A piece
# with one behind it does not grow any more.
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

# behind finds the next piece, and counts all.
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

# sweep removes what ended more than a week ago, by the clock that makes tokens, once a
# day, the oldest first and not too many.
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

# tell sends TERM to what lives in session sid, once: timeout would send it on, so that a
# trap heard it twice, and what the trap calls to tidy up was killed.
tell() {
	all=$(session "$sid") told=
	for pid in $all; do
		read -r line <"/proc/$pid/stat" || continue
		case $line in "$pid (timeout) "*) ;; *) told="$told $pid" ;; esac
	done
	kill -TERM ${told:-$all}
}

# halt ends a step that runs, and looks whether it did.
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

# plain does the step without a record.
plain() {
	[ "$again" = 0 ] || [ "$twice" = 1 ] || no untold
	case $verb in run | put) ;; *) no untold ;; esac
	exec timeout -k 5 "$bound" sh -c '
		exec 2>&1 3<&-
		printf "%s mark %s %s\n" "$0" "$$" "$PPID"
		exec sh -c "$1"
	' "$nonce" "$text" <&3
}

# leave goes on outside of the session, if logind ends what is left of one: else the step
# would end with its connection. It is tried first, for who cannot have it stays. What is
# tried may fail the next time: the shell out there says that it began, and does nothing if
# nobody hears it, so that one of the two goes on.
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

# kills tells whether logind is told to. What is said last counts.
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
