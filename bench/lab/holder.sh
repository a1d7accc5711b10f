# shellcheck shell=sh
# Run by unshare as the first process of a box (or of the head): makes the box its own, then holds it.
# usage: sh holder.sh NAME LABDIR
set -e
echo "$1" > /proc/sys/kernel/hostname
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=1777 tmpfs "$2/tmp"
mount --bind "$2/hosts" /etc/hosts
# UCX and hwloc list the network devices in /sys: show them this box's, not the machine's.
mount -t sysfs sysfs /sys 2>/dev/null || true
# No IPv6: its neighbour chatter is not ours to measure.
for scope in all default; do
    echo 1 > "/proc/sys/net/ipv6/conf/$scope/disable_ipv6" 2>/dev/null || true
done
ip link set lo up
echo ready
# Ignoring SIGCHLD lets the kernel reap the orphans that a first process inherits.
exec env -i "MESHCOLL_LAB_HOLDER=$MESHCOLL_LAB_HOLDER" "PATH=$PATH" \
    env --ignore-signal=CHLD sleep infinity > /dev/null 2>&1
