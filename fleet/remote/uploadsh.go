package remote

// exitOtherSum is the exit code of the script if all bytes arrived but the checksum differs.
const exitOtherSum = 65

// uploadScript reads a file from stdin, stores it beside its destination, and moves it there
// only if its checksum is right, so that nobody ever sees half a file. Its arguments are the
// path, its directory, the prefix of parts, the checksum, a nonce, the mode and the size. The
// variable phase selects everything (both) or one of the phases for put.sh, which takes the
// lock between the two.
//
// It begins with an answer, a line with the nonce: "same" if the file is already there, "no" if
// the host cannot take it, or "have", the number of bytes that a part has, and their checksum.
// Then it reads a line with the position from which the content follows, which is 0 if those
// bytes were wrong. At the end it prints
// "done".
//
// The script copies the part of an earlier upload instead of appending to it, because a process
// of that upload may still live and write. It removes parts of outdated content for the same
// path, and parts of other files after a week.
//
// noclobber (set -C) makes the shell create the part itself, so that it follows no link that
// somebody put there. The traps for signals exist because some shells do not run the trap for
// EXIT when a signal ends them.
const uploadScript = `: muster-upload
umask 077
LC_ALL=C; export LC_ALL
to=$1 dir=$2 parts=$3 sum=$4 nonce=$5 mode=$6 size=$7
part=$parts$sum-$nonce.part
say() { printf '%s %s\n' "$nonce" "$1"; }
no() { say no; printf '%s\n' "$1"; exit 1; }
bytes() { set -- $(wc -c < "$1"); echo "$1"; }
leave() {
	if [ -f "$part" ] && [ "$(bytes "$part")" -lt 65536 ]; then rm -f "$part"; fi
}
keep() {
	chmod "$mode" "$to" || { printf '%s\n' "the mode of $to cannot be changed"; exit 1; }
	rm -f "$parts"*.part
	say done
	exit 0
}
place() {
	if [ ! -f "$part" ]; then
		printf '%s\n' "another upload of $to took its place"
		exit 1
	fi
	if ! chmod "$mode" "$part" || ! mv -f "$part" "$to"; then rm -f "$part"; exit 1; fi
	sync "$dir" > /dev/null 2>&1
	say done
	exit 0
}
case $phase in
place) place ;;
same) keep ;;
drop) rm -f "$part"; exit 0 ;;
esac

if sha256sum < /dev/null > /dev/null 2>&1; then
	hash() { set -- $(sha256sum < "$1"); echo "$1"; }
elif openssl dgst -sha256 -r < /dev/null > /dev/null 2>&1; then
	hash() { set -- $(openssl dgst -sha256 -r < "$1"); echo "$1"; }
else
	no 'the host has neither sha256sum nor openssl, so nobody could tell what arrived'
fi
if [ -d "$to" ]; then no "$to is a directory"; fi
if [ ! -d "$dir" ]; then no "there is no directory $dir"; fi
if [ -f "$to" ] && [ -r "$to" ] && [ "$(bytes "$to")" = "$size" ] && [ "$(hash "$to")" = "$sum" ]
then
	say same
	if [ "$phase" = fetch ]; then exit 67; fi
	keep
fi

trap leave EXIT
trap 'exit 1' HUP INT TERM
have=0
for p in "$parts"*.part; do
	if [ -f "$p" ]; then
		case $p in "$parts$sum"-*)
			n=$(bytes "$p")
			if [ "$n" -gt "$have" ] && [ "$n" -le "$size" ]; then
				rm -f "$part"
				if (set -C; cat "$p" > "$part"); then have=$(bytes "$part"); else rm -f "$part"; have=0; fi
			fi ;;
		esac
		rm -f "$p"
	fi
done
if [ "$have" = 0 ]; then (set -C; : > "$part") || no "$dir cannot be written"; fi
find "$dir" -maxdepth 1 -name '.muster-????????-*.part' -mtime +7 -exec rm -f {} \; 2> /dev/null
free=$(df -Pk "$dir" 2> /dev/null | { read -r x; read -r x x x k x; echo "$k"; })
case $free in
'' | *[!0-9]*) ;;
*)
	need=$(((size - have + 1023) / 1024))
	if [ "$free" -lt "$need" ]; then
		rm -f "$part"
		no "$dir has no space for it: $need KiB are needed, $free are free"
	fi ;;
esac

if [ "$have" = 0 ]; then say 'have 0 -'; else say "have $have $(hash "$part")"; fi
read -r from || exit 1
case $from in
"$have") ;;
0) : >| "$part" ;;
*) exit 1 ;;
esac
if ! cat >> "$part"; then rm -f "$part"; exit 1; fi
if [ ! -f "$part" ]; then
	if [ "$phase" = fetch ]; then exit 66; fi # whoever took it is asked about
	place
fi
n=$(bytes "$part")
if [ "$n" -lt "$size" ]; then
	printf '%s\n' "only $n bytes of $size came"
	exit 1
fi
got=$(hash "$part")
if [ "$got" != "$sum" ]; then
	rm -f "$part"
	printf '%s\n' "sha256 on the host is $got, expected $sum"
	exit 65
fi
sync "$part" > /dev/null 2>&1
if [ "$phase" = fetch ]; then trap - EXIT; exit 66; fi
place
`
