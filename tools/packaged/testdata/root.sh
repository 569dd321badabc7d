# root.sh KIND STORY OLD NEXT: plays a story of packages on a copy of this machine, in a mount
# namespace, so that the machine itself gets nothing of it. systemctl notes what it is told.
kind=$1 story=$2 old=$3 next=$4

top=$(mktemp -d)
mount -t tmpfs root "$top"
mkdir "$top/upper" "$top/work" "$top/root"
mount -t overlay root -o "lowerdir=/,upperdir=$top/upper,workdir=$top/work" "$top/root"
root=$top/root
trap 'umount -l "$root" "$top"; rmdir "$top"' EXIT
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"

# A machine without muster, whose systemd runs.
for list in passwd shadow group gshadow; do sed -i '/^muster:/d' "$root/etc/$list"; done
rm -rf "$root/etc/muster" "$root/var/lib/muster-server" "$root/usr/sbin/policy-rc.d" "$root/run/systemd"
mkdir -p "$root/run/systemd/system" "$root/active" "$root/db/updates" "$root/db/info" "$root/db/triggers" "$root/rpmdb"
: > "$root/db/status"
: > "$root/log"
rm -f "$root/usr/bin/systemctl" "$root/bin/systemctl"
cat > "$root/usr/bin/systemctl" <<'STOP'
#!/bin/sh
for last; do :; done
case " $* " in *' is-active '*) [ -e "/active/$last" ]; exit ;; esac
echo "$*" >> /log
STOP
chmod 755 "$root/usr/bin/systemctl"
cp "$old" "$root/old.$kind"
cp "$next" "$root/next.$kind"

in_root() { chroot "$root" "$@"; }
put() {
	case $kind in
	deb) in_root dpkg --admindir=/db --force-depends --force-downgrade --force-confdef --force-confold \
		-i "/$1.deb" ;;
	rpm) in_root rpm --dbpath /rpmdb --nodeps --nosignature --oldpackage -U "/$1.rpm" ;;
	esac > "$root/said" 2>&1 || { cat "$root/said"; exit 1; }
}
remove() {
	case $kind in
	deb) in_root dpkg --admindir=/db --force-depends --remove muster ;;
	rpm) in_root rpm --dbpath /rpmdb --nodeps -e muster ;;
	esac > "$root/said" 2>&1 || { cat "$root/said"; exit 1; }
}
fail() { echo "$*"; echo 'systemctl was told:'; cat "$root/log"; exit 1; }
# told WORDS…: systemctl was told exactly these orders, a line each, since the last time.
told() {
	printf '%s\n' "$@" > "$top/want"
	diff "$top/want" "$root/log" || fail 'want the lines with <, got those with >'
	: > "$root/log"
}
has() { [ -e "$root$1" ] || fail "$1 is missing"; }
lacks() { [ ! -e "$root$1" ] || fail "$1 is there"; }
config=$root/etc/muster/muster.yaml
usr2='kill --kill-who=main --signal=USR2 muster-master.service'

put old
told daemon-reload
grep -q '^muster:' "$root/etc/passwd" || fail 'there is no user muster'
[ "$(in_root stat -c %U:%G:%a /etc/muster/muster.yaml)" = root:muster:640 ] || fail "$(ls -l "$config")"
[ "$(in_root stat -c %U:%G:%a /var/lib/muster-server)" = muster:muster:700 ] || fail 'the folder of history'
grep -q 'nothing is started' "$root/said" || fail "the installation says: $(cat "$root/said")"

case $story in
fresh)
	put next
	told daemon-reload
	grep -q 'new in this version' "$config" || fail 'an untouched configuration stays old'
	[ "$(in_root stat -c %U:%G:%a /etc/muster/muster.yaml)" = root:muster:640 ] || fail "$(ls -l "$config")"
	put old # and back
	told daemon-reload
	;;
running) # a master takes the new binary in place, a server restarts behind its socket; none is stopped
	touch "$root/active/muster-master.service" "$root/active/muster-server.service"
	for version in next old next; do
		put $version
		told daemon-reload "$usr2" 'try-restart muster-server.service'
	done
	;;
stopped) # one of two
	touch "$root/active/muster-master.service"
	put next
	told daemon-reload "$usr2"
	put old
	told daemon-reload "$usr2"
	;;
edited)
	echo '# mine' >> "$config"
	in_root chgrp daemon /etc/muster/muster.yaml
	before=$(md5sum < "$config")
	put next
	[ "$before" = "$(md5sum < "$config")" ] || fail 'what the administrator wrote is gone'
	[ "$(stat -c %G "$config")" = daemon ] || fail 'the group that the administrator chose is gone'
	put old
	[ "$before" = "$(md5sum < "$config")" ] || fail 'what the administrator wrote is gone'
	;;
forbidden) # policy-rc.d of Debian forbids all; nobody is told anything
	touch "$root/active/muster-master.service" "$root/active/muster-server.service"
	printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
	chmod 755 "$root/usr/sbin/policy-rc.d"
	put next
	told daemon-reload
	;;
gone)
	echo key > "$root/etc/muster/server.key"
	echo history > "$root/var/lib/muster-server/history.db"
	echo '# mine' >> "$config"
	remove
	told '--quiet disable muster-server.socket muster-server.service muster-master.service' \
		'stop muster-master.service' 'stop muster-server.socket muster-server.service' daemon-reload
	lacks /usr/bin/muster
	lacks /usr/lib/systemd/system/muster-master.service
	has /etc/muster/server.key
	has /var/lib/muster-server/history.db
	case $kind in
	deb) has /etc/muster/muster.yaml ;;
	rpm) has /etc/muster/muster.yaml.rpmsave ;;
	esac
	[ $kind = deb ] || exit 0
	in_root dpkg --admindir=/db --force-depends --purge muster > "$root/said" 2>&1 || fail "$(cat "$root/said")"
	told daemon-reload
	lacks /etc/muster
	lacks /var/lib/muster-server
	put old # as if it had never been there
	told daemon-reload
	;;
*) fail "no such story: $story" ;;
esac
