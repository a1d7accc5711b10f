#!/usr/bin/env bash
# Where bench/lab finds the cpu controller, on made-up /proc trees: control groups of both versions. No lab is made.
. "$(dirname "$0")/lib.sh"

dir=$scratch
mkdir "$dir/proc" "$dir/v2"

# finds WANTED CGROUP MOUNT CONTROLLERS: of a process in these groups, with this mounted, whose version 2 hands these on
finds() {
    local got
    printf '%b' "$2" >"$dir/proc/cgroup"
    printf '%b' "$3" >"$dir/proc/mounts"
    echo "$4" >"$dir/v2/cgroup.subtree_control"
    got=$(cd bench/lab && python3 -B -c 'import cores, sys; print(*cores.find(sys.argv[1]))' "$dir/proc" 2>&1)
    [ "$got" = "$1" ] || fail "'$2' on '$3', which hands on '$4': found '$got', expected '$1'"
}

v1='none /tmp tmpfs rw 0 0\ncgroup /cg/cpu cgroup rw,cpu,cpuacct 0 0\n' v2="cgroup2 $dir/v2 cgroup2 rw,nosuid 0 0\n"
finds "/cg/cpu /" '4:cpu,cpuacct:/\n0::/\n' "$v1" ""
finds "/cg/cpu /a" '4:cpu,cpuacct:/a\n0::/b\n' "$v1$v2" "cpu"
finds "$dir/v2 /" '0::/\n' "$v2" "cpuset cpu io"
finds "$dir/v2 /meshcoll-lab-x" '1:name=systemd:/s\n0::/meshcoll-lab-x\n' "none /tmp tmpfs rw 0 0\n$v2" "cpu"
finds "None /" '0::/\n' "$v2" "cpuset io" # not handed on: cpuset is another
finds "None /" '0::/\n' 'none /tmp tmpfs rw 0 0\n' ""
finds "None /" '' "$v2" "cpu"
finish
