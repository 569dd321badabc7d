# init: the first process of a pretended host: init.sh STATE NAME ADDRESS MAC.
#
# It says "plug me in" and waits for a line: then its cable is there. STATE is a folder
# that outlives the host's boots.
set -eu
state=$1 name=$2 address=$3 mac=$4
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

mount --make-rprivate /
mount -t proc proc /proc
mount --bind "$state/boot_id" /proc/sys/kernel/random/boot_id
mount --bind "$state/cmdline" /proc/cmdline
# Nothing of the home of whoever runs the tests is there: what a login shell reads in it
# would be part of the host.
for dir in etc root usr/local var/lib; do
	below=$state/$dir/lower
	[ "$dir" = root ] || below=$below:/$dir
	mount -t overlay disk \
		-o "lowerdir=$below,upperdir=$state/$dir/upper,workdir=$state/$dir/work" "/$dir"
done
for dir in run tmp var/log dev/shm; do
	mount -t tmpfs -o mode=1777 tmpfs "/$dir"
done
chmod 755 /run
mkdir -m 755 /run/sshd
hostname "$name"

echo 'plug me in'
read -r go
ip link set lo up
ip link set eth0 address "$mac" # always the same, or neighbours look for the old one for a while
ip addr add "$address/16" dev eth0
ip link set eth0 up

# A host whose services do not start is there all the same.
sh -e /etc/pretended/boot || echo "pretended host: boot ended with $?"
/usr/sbin/sshd -D -e -f /etc/pretended/sshd_config &

# Somebody must be here for as long as the host is up, and bury those whose parents died.
exec <&-
sleep infinity &
wait
