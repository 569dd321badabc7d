#!/bin/sh
# Makes a small Debian 12 with systemd in the folder $1: disk, kernel and initrd of a
# virtual machine. It is made once; delete the folder to have it made anew.
#
# All is installed in a folder below $1, in namespaces of mmdebstrap: this machine gets
# nothing of it.
set -eu
cd "$1"
PATH=$PATH:/usr/sbin:/sbin
trap 'rm -rf root new.*' EXIT

# Without these its boot takes twice as long where every instruction is emulated.
masked='e2scrub_reap.service e2scrub_all.timer apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer
	fstrim.timer systemd-pstore.service getty@tty1.service serial-getty@ttyS0.service getty-static.service'

# The modules of a Debian that is made for any machine would be 30 MB to unpack.
cat > new.initrd <<END
mkdir -p "\$1/etc/initramfs-tools/conf.d"
echo MODULES=list > "\$1/etc/initramfs-tools/conf.d/vm"
printf '%s\n' virtio_pci virtio_blk ext4 >> "\$1/etc/initramfs-tools/modules"
END
chmod 755 new.initrd

rm -rf root
mmdebstrap --quiet --variant=minbase --components=main \
	--include='systemd,systemd-sysv,libpam-systemd,dbus,openssh-server,nftables,iproute2,procps' \
	--include='redis-server' \
	--include='linux-image-cloud-amd64,initramfs-tools,busybox,zstd' \
	--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
	--dpkgopt='path-exclude=/usr/share/man/*' --essential-hook="$PWD/new.initrd" \
	bookworm root "${MIRROR:-http://deb.debian.org/debian}"

etc=root/etc
echo vm > $etc/hostname
echo '/dev/vda / ext4 defaults 0 1' > $etc/fstab
rm -f $etc/ssh/ssh_host_* $etc/machine-id
echo 0123456789abcdef0123456789abcdef > $etc/machine-id
ssh-keygen -q -t ed25519 -N '' -C vm -f $etc/ssh/ssh_host_ed25519_key
ssh-keygen -q -t ed25519 -N '' -C login -f new.key
for home in root home/deploy; do
	mkdir -p root/$home/.ssh
	cp new.key.pub root/$home/.ssh/authorized_keys
	chmod -R go= root/$home
done
echo 'deploy:x:1000:1000::/home/deploy:/bin/sh' >> $etc/passwd
echo 'deploy:x:1000:' >> $etc/group
echo 'deploy:*:19000:0:99999:7:::' >> $etc/shadow
chown -R 1000:1000 root/home/deploy

cat > $etc/systemd/network/vm.network <<END
[Match]
Name=e*
[Network]
Address=10.0.2.15/24
Gateway=10.0.2.2
END
# The console: each line is a shell text in base64, and is answered by one with its exit
# code and what it said. It needs no network, and no session.
cat > root/usr/local/sbin/console <<'END'
#!/bin/sh
stty raw -echo
echo ready
while read -r text; do
	said=$(sh -c "$(printf %s "$text" | base64 -d)" 2>&1 < /dev/null)
	printf 'ended %s %s\n' "$?" "$(printf %s "$said" | base64 -w 0)"
done
END
chmod 755 root/usr/local/sbin/console
cat > $etc/systemd/system/console.service <<END
[Unit]
After=ssh.service systemd-logind.service
[Service]
ExecStart=/usr/local/sbin/console
StandardInput=tty-force
StandardOutput=tty
TTYPath=/dev/ttyS1
Restart=always
[Install]
WantedBy=multi-user.target
END
# Login waits for the manager of the user, which takes its time: so it is always there.
mkdir -p root/var/lib/systemd/linger
touch root/var/lib/systemd/linger/root root/var/lib/systemd/linger/deploy
systemctl --quiet --root=root disable redis-server 2> /dev/null
systemctl --quiet --root=root enable systemd-networkd nftables console 2> /dev/null
systemctl --quiet --root=root mask $masked 2> /dev/null

mv root/boot/vmlinuz-* vmlinuz
mv root/boot/initrd.img-* initrd
cp $etc/ssh/ssh_host_ed25519_key.pub host_key.pub
mv new.key key
truncate -s 1G new.disk
mkfs.ext4 -q -F -d root new.disk
mv new.disk disk
