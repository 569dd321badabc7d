#!/bin/sh
# Installs what tests and benchmarks need on Debian: install.sh redis sshd …
#
# It does nothing for what is there already. What is missing comes by apt (with
# sudo if not root), and it says which package and why. It leaves these packages
# and the folder /run/sshd behind, and no daemon: neither now (policy-rc.d, which
# it takes away again) nor at the next boot (systemctl disable).
# On other systems, or without sudo, it only says what is missing: the tests that
# need it will be skipped and say so.
set -eu

wanted=$* packages='' units=''

# need WHY COMMAND PACKAGES [UNIT]: notes the packages if the command fails.
need() {
	if sh -c "$2" >/dev/null 2>&1; then return; fi
	echo "install: $3: $1"
	packages="$packages $3" units="$units${4:+ $4}"
}

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# apt says nothing but what went wrong.
apt() {
	as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get -qq -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 "$@" >>"$log" 2>&1
}

PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
for what in "$@"; do
	case $what in
	redis) need 'tests run on a real Redis' 'command -v redis-server' redis-server redis-server ;;
	sshd)
		need 'tests log in to a real sshd' 'command -v sshd' openssh-server ssh
		need 'hosts of tests are made of it' 'command -v busybox' busybox
		need 'it is the login shell of a host of tests' 'command -v csh' csh
		need 'commands on a host of tests run as another user' 'command -v sudo' sudo
		;;
	nodeset) need 'host sets are held against those of ClusterShell' 'command -v nodeset' \
		clustershell ;;
	bind)
		need 'keys are rolled on a real named' 'command -v named' bind9 named
		need 'dnssec-verify looks at a signed zone' 'command -v dnssec-verify' bind9-utils
		need 'dig and delv ask the servers of tests' 'command -v delv' bind9-dnsutils
		;;
	knot) need 'keys are rolled on a real knotd' 'command -v knotd' knot knot ;;
	ansible)
		need 'tests compare with what Ansible reads' 'command -v ansible-inventory' ansible-core
		need 'its collections are repositories of others, which tests run' \
			'dpkg -s ansible | grep -q "^Status:.* installed"' ansible
		;;
	node) need 'BullMQ, beside which muster is measured, runs on it' 'command -v npm' 'nodejs npm' ;;
	postgres) need 'tests keep history in a PostgreSQL of their own' \
		'ls /usr/lib/postgresql/*/bin/initdb' postgresql postgresql ;;
	chromium) need 'a page of another site tries to use a server in it' \
		'command -v chromium-headless-shell' chromium-headless-shell ;;
	prometheus)
		need 'alerts and the dashboard are tried in it' 'command -v prometheus' prometheus prometheus
		need 'it judges the rules of alerts' 'command -v promtool' prometheus prometheus
		need 'it sends alerts, and takes ours' 'command -v prometheus-alertmanager' \
			prometheus-alertmanager prometheus-alertmanager
		;;
	systemd) need 'it judges the units' 'command -v systemd-analyze' systemd ;;
	packages)
		need 'packages of muster are looked at with it' 'command -v rpm2cpio' rpm
		need 'the files of a package are listed with it' 'command -v cpio' cpio
		need 'it judges the manual pages' 'command -v groff' groff-base
		;;
	gcc) need 'the race detector is linked by a C compiler' \
		'echo "#include <stdlib.h>" | gcc -xc -c -o /dev/null -' 'gcc libc6-dev' ;;
	nft)
		need 'the runbook firewall is tried on a real one' 'command -v nft' nftables nftables
		need 'its rules are those that nft cannot bring back' 'command -v iptables-nft' iptables
		need 'hosts of tests get a network of their own' 'command -v ip' iproute2
		;;
	rauc)
		need 'the runbook firmware is tried on a real one' 'command -v rauc' rauc rauc
		need 'rauc is a service on it' 'command -v dbus-daemon' dbus-daemon
		need 'bundles are made with it' 'command -v mksquashfs' squashfs-tools
		need 'bundles are signed with it' 'command -v openssl' openssl
		need 'the runbook firmware is tried with it as well' 'command -v swupdate' swupdate
		need 'its bundles are made with it' 'command -v cpio' cpio
		;;
	vm)
		need 'it is the machine in which a real systemd is tried' \
			'command -v qemu-system-x86_64' qemu-system-x86
		need 'the disk of that machine is made by it' 'command -v mmdebstrap' mmdebstrap
		need 'that disk has a file system' 'command -v mkfs.ext4' e2fsprogs
		need 'the keys of that machine are made by it' 'command -v ssh-keygen' openssh-client
		;;
	chromium) need 'pages are looked at with it' 'command -v chromium-headless-shell' \
		chromium-headless-shell ;;
	*) echo "install: $what is not known: see the list in tools/install.sh" >&2; exit 2 ;;
	esac
done

if ! command -v apt-get >/dev/null || { [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; }; then
	[ -z "$packages" ] || echo 'install: this needs apt-get, and root or sudo: install them yourself'
	exit 0
fi
if [ -n "$packages" ]; then
	log=$(mktemp) policy=
	trap 'rm -f "$log"; [ -z "$policy" ] || as_root rm -f "$policy"' EXIT
	trap 'exit 130' INT TERM HUP
	if [ ! -e /usr/sbin/policy-rc.d ]; then
		policy=/usr/sbin/policy-rc.d
		printf '#!/bin/sh\nexit 101\n' | as_root sh -c "cat >$policy && chmod 755 $policy"
	fi
	# The first try fails where the package lists are old or were never fetched.
	set -- -y install --no-install-recommends $packages
	apt "$@" || { apt update; apt "$@"; } || { cat "$log" >&2; exit 1; }
	[ -z "$units" ] || ! command -v systemctl >/dev/null || as_root systemctl --quiet disable $units
fi
case $wanted in *sshd*) [ -d /run/sshd ] || as_root mkdir -p /run/sshd ;; esac
