#!/bin/bash
# The first process of the lab's machine: mounts what a system needs, plays one scenario, ends.
#
# Its root is the host's own, read only; the one place of the host that it can write to is LAB_DIR,
# which comes by the kernel's command line. Everything that is said goes to the console, which is a
# pipe of `cargo xtask lab`. Nothing is mounted over /tmp: what is tested may lie there.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/dev/shm TMPDIR=/dev/shm
umask 022

# Ends the machine, whatever happened.
finish() {
  echo "$1" >/dev/lab/status
  sync
  echo o >/proc/sysrq-trigger
  sleep 60
}

mount -t proc none /proc
mount -t sysfs none /sys
mount -t tmpfs none /run
# Without devices of its own in /dev nothing of the host's can be meant by any name.
mount -t tmpfs none /dev
mkdir -p /run/lock/lvm /run/lvm /run/mdadm /dev/lab /dev/mapper /dev/md /dev/shm /dev/blkio /dev/modules/lib/modules
mknod -m 666 /dev/null c 1 3
mknod -m 666 /dev/zero c 1 5
mknod -m 666 /dev/random c 1 8
mknod -m 666 /dev/urandom c 1 9
mknod -m 600 /dev/console c 5 1
ln -s /proc/self/fd /dev/fd
if ! mount -t hostfs -o "$LAB_DIR" none /dev/lab; then
  echo "lab: cannot mount $LAB_DIR"
  echo o >/proc/sysrq-trigger
  sleep 60
fi
# What the scenario was given: LAB_PLIMSOLL, LAB_HOME.
. /dev/lab/settings
. "$LAB_HOME/guest/tools.sh"

ln -s "/usr/lib/uml/modules/$(uname -r)" /dev/modules/lib/modules/
mount -t cgroup -o blkio none /dev/blkio
nodes

bash -euo pipefail -c '. "$LAB_HOME/guest/tools.sh"; . /dev/lab/scenario.sh' </dev/null
status=$?
keep
finish "$status"
