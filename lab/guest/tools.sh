# What scenarios are written with. Sourced by the first process and by each scenario.

export LAB_HOME LAB_PLIMSOLL LAB_SHORT
# LVM without udev, with its own configuration instead of the host's.
export DM_DISABLE_UDEV=1 LVM_SYSTEM_DIR=/dev/shm/lvm LVM_SUPPRESS_FD_WARNINGS=1
STORE=/dev/shm/lab.db

# What is done now, for whoever watches.
step() { echo "lab: $*"; }

# Ends the scenario as failed.
fail() {
  echo "lab: failed: $*"
  exit 1
}

# A value that the checks on the host ask for: note NAME VALUE
note() { printf '%s\t%s\n' "$1" "$2" >>/dev/lab/notes; }

# Nanoseconds since 1970.
now() { date +%s%N; }

# Device nodes for all block devices that there are: nobody else makes them here.
nodes() {
  local place name numbers major minor
  for place in /sys/block/*/dev /sys/block/*/*/dev; do
    [ -e "$place" ] || continue
    name=${place%/dev} name=${name##*/}
    IFS=: read -r major minor <"$place"
    [ -b "/dev/$name" ] || mknod "/dev/$name" b "$major" "$minor"
  done
  # What btrfs is told by, and what file systems in user space are served by.
  for name in btrfs-control fuse; do
    numbers=$(awk -v name="$name" '$2 == name { print $1 }' /proc/misc)
    [ -z "$numbers" ] || [ -e "/dev/$name" ] || mknod "/dev/$name" c 10 "$numbers"
  done
  numbers=$(awk '$2 == "device-mapper" { print $1 }' /proc/misc)
  if [ -n "$numbers" ] && [ ! -e /dev/mapper/control ]; then
    mknod /dev/mapper/control c 10 "$numbers"
  fi
}

# modules NAME...
modules() {
  local name
  for name; do modprobe -d /dev/modules "$name"; done
  nodes
}

# drives COUNT MIB MILLISECONDS QUEUE: SCSI drives in memory, each of which answers a request after
# about so long and takes QUEUE of them at a time; so it ends at QUEUE / MILLISECONDS.
drives() {
  local count=$1 n
  modprobe -d /dev/modules sd_mod
  modprobe -d /dev/modules scsi_debug add_host="$count" per_host_store=1 dev_size_mb="$2" \
    ndelay="$(($3 * 1000000))" max_queue=192
  for ((n = 0; n < 100; n++)); do
    [ "$(echo /sys/block/sd? | wc -w)" -lt "$count" ] || break
    sleep 0.1
  done
  nodes
  for ((n = 1; n <= count; n++)); do
    [ -b "$(drive $n)" ] || fail "drive $n did not come"
    queue $n "$4"
    echo none >"/sys/block/$(basename "$(drive $n)")/queue/scheduler"
  done
}

# The path of drive N, from 1.
drive() {
  local letters=abcdefghijklmnop
  echo "/dev/sd${letters:$(($1 - 1)):1}"
}

# from_to FROM TO: the paths of these drives.
from_to() {
  local n
  for ((n = $1; n <= $2; n++)); do drive "$n"; done
}

# queue N LENGTH: how many requests drive N takes at a time.
queue() { echo "$2" >"/sys/block/$(basename "$(drive "$1")")/device/queue_depth"; }

# major:minor of a device.
numbers() { cat "/sys/class/block/$(basename "$(realpath "$1")")/dev"; }

# throttle DEVICE LIMIT=NUMBER...: read_iops, write_iops, read_bps, write_bps a second; 0 lifts it.
# On the root of the hierarchy: it holds for kernel threads as well, such as those of RAID 5.
throttle() {
  local device=$1 limit
  shift
  for limit; do
    echo "$(numbers "$device") ${limit#*=}" >"/dev/blkio/blkio.throttle.${limit%%=*}_device"
  done
}

# array NAME LEVEL CHUNK_KIB DEVICE...: an md array without waiting, its path is printed.
array() {
  local name=$1 level=$2 chunk=$3
  shift 3
  local options=(--chunk="$chunk")
  [ "$level" != 1 ] || options=()
  case $level in
    4 | 5 | 6) modules raid456 ;;
    *) modules "raid$level" ;;
  esac
  # mdadm takes an array of one drive for a mistake.
  [ $# -gt 1 ] || options+=(--force)
  # Without a bitmap there are no writes but those of the load.
  [ "$level" = 0 ] || options+=(--bitmap=none)
  mdadm --create "/dev/$name" --run --quiet --level="$level" "${options[@]}" --raid-devices=$# \
    --metadata=1.2 --homehost=lab --assume-clean "$@" </dev/null >&2 ||
    fail "mdadm makes no $name"
  nodes
  echo "/dev/$name"
}

# unarray NAME DEVICE...
unarray() {
  local name=$1
  shift
  mdadm --stop --quiet "/dev/$name" >&2
  rm -f "/dev/$name"
  mdadm --zero-superblock "$@" >&2
}

# measure NAME ARGUMENTS...: `plimsoll run` with these; its run is called NAME in the checks.
# The exit code is plimsoll's.
measure() {
  local name=$1 status=0 run
  shift
  step "measuring $name"
  "$LAB_PLIMSOLL" --store "$STORE" run --quiet --json "$@" >/dev/shm/run.json || status=$?
  run=$(sed -n 's/^ *"run": "\(r[0-9]*\)",$/\1/p;/"run"/q' /dev/shm/run.json)
  [ -z "$run" ] || note "run.$name" "$run"
  note "exit.$name" "$status"
  keep
  return "$status"
}

# Brings the store out. A log beside it from an earlier time would be taken for this one's.
keep() {
  local file
  [ -e "$STORE" ] || return 0
  rm -f /dev/lab/lab.db*
  for file in "$STORE"*; do
    # Journals of studies are in a directory beside it, and stay.
    [ -d "$file" ] || cp "$file" /dev/lab/
  done
}

# probe NAME ARGUMENTS...: what `plimsoll probe` says, as the document NAME.json of the checks.
probe() {
  local name=$1
  shift
  step "probing for $name"
  "$LAB_PLIMSOLL" probe --json "$@" >"/dev/lab/$name.json"
}

# blank DEVICE: zeros at both of its ends, so that it may be written.
blank() {
  local mib=$(($(blockdev --getsize64 "$1") / 1048576))
  dd if=/dev/zero of="$1" bs=1M count=2 oflag=direct status=none
  dd if=/dev/zero of="$1" bs=1M seek=$((mib - 2)) oflag=direct status=none || true
}

# mapped NAME TABLE: a device of the device mapper that the kernel counts on; its path is printed.
mapped() {
  local path
  modules dm-mod
  dmsetup create "$1" --table "$2" >&2 || fail "dmsetup makes no $1"
  nodes
  path=/dev/dm-$(dmsetup info -c --noheadings -o minor "$1")
  echo 1 >"/sys/block/$(basename "$path")/queue/iostats" || true
  echo "$path"
}

# sectors DEVICE: its length in sectors of 512 bytes.
sectors() { blockdev --getsz "$1"; }

# study NAME ARGUMENTS...: `plimsoll study` with these, what it says in NAME.said; its exit code is noted as exit.NAME, and is
# the function's.
study() {
  local name=$1 status=0
  shift
  step "study $name"
  "$LAB_PLIMSOLL" --store "$STORE" study "$@" >"/dev/lab/$name.said" 2>&1 || status=$?
  note "exit.$name" "$status"
  keep
  return "$status"
}

# traces DEVICE...: what a study could have left, a line each: arrays, mapped devices, mounts of block devices, signatures,
# bytes in the first and last MiB. Nothing where there is none.
traces() {
  local device mib
  grep -E '^md' /proc/mdstat 2>/dev/null | sed 's/^/array /' || true
  dmsetup ls 2>/dev/null | grep -v '^No devices' | sed 's/^/mapped /' || true
  grep -E '^/dev/' /proc/mounts | sed 's/^/mounted /' || true
  for device; do
    wipefs --no-act --noheadings "$device" | sed "s|^|signature on $device |"
    mib=$(($(blockdev --getsize64 "$device") / 1048576))
    cmp --quiet --bytes=1048576 "$device" /dev/zero || echo "bytes at the beginning of $device"
    tail -c 1048576 "$device" | cmp --quiet --bytes=1048576 - /dev/zero || echo "bytes at the end of $device"
  done
}
