#!/bin/sh
# Hosts that are not there: network namespaces joined by cables (veth), each with a host name and shared memory of its own, so
# that nothing but the network is between them. It takes root and iproute2; what cannot be made here ends with exit code 77.
#
# usage: hosts.sh make NAME COUNT [MTU]       namespaces NAME1, NAME2 ...: two are joined by a cable, more by a switch
#        hosts.sh cable NAME COUNT NET [MTU]  one more net between them
#        hosts.sh remove NAME
#        hosts.sh reach NAME [-OPTION ...] HOST COMMAND ...    in place of ssh
#        hosts.sh run COUNT MPIEXEC RANKS PROGRAM [ARGUMENT ...]
#
# NAME ends with a letter. In net NET, 31 for the first, host K has the addresses 10.77.NET.K and fd77:NET::K at its interface
# tvNET; a switch is the namespace NAMEs, with the port pNET-K for host K. Of a HOST that is reached the number counts with which
# it ends. `run` makes hosts, runs a program of Tern's on them and removes them.
set -u

fail() {
    echo "hosts.sh: $*" >&2
    exit 2
}

numbers() { seq 1 "$1"; }

# What is asked for in vain whatever the machine: no reason to leave a test out.
check() {
    name=$1 mtu=${3:-1500}
    case $name in *[a-z]) ;; *) fail "$name: must end with a letter, for numbers follow" ;; esac
    case $2$mtu in *[!0-9]*) fail "COUNT and MTU must be numbers: $2 $mtu" ;; esac
    [ "$mtu" -ge 1280 ] || fail "MTU $mtu: at least 1280, for IPv6 has no less (an interface that is there takes less: ip link set)"
    [ -z "$(ls /run/netns 2>/dev/null | sed -n "/^$name[0-9s][0-9]*\$/p")" ] || fail "$name: there are hosts of this name"
}

# One more net: a cable between two, or one from each to a switch.
cable() {
    name=$1 count=$2 net=$3 mtu=${4:-1500}
    if [ "$count" -gt 2 ]; then
        ip -n "${name}s" link add name "sw$net" mtu "$mtu" type bridge && ip -n "${name}s" link set "sw$net" up || return 1
    else
        ip link add "tv$net" mtu "$mtu" netns "${name}1" type veth peer name "tv$net" mtu "$mtu" netns "${name}2" || return 1
    fi
    for k in $(numbers "$count"); do
        host=$name$k
        if [ "$count" -gt 2 ]; then
            ip link add "tv$net" mtu "$mtu" netns "$host" type veth peer name "p$net-$k" mtu "$mtu" netns "${name}s" &&
                ip -n "${name}s" link set "p$net-$k" master "sw$net" up || return 1
        fi
        ip -n "$host" addr add "10.77.$net.$k/24" dev "tv$net" &&
            ip -n "$host" -6 addr add "fd77:$net::$k/64" dev "tv$net" nodad &&
            ip -n "$host" link set "tv$net" up || return 1
    done
}

make() {
    name=$1 count=$2
    for host in $([ "$count" -gt 2 ] && echo s) $(numbers "$count"); do
        ip netns add "$name$host" && ip -n "$name$host" link set lo up || return 1
    done
    cable "$name" "$count" 31 "${3:-1500}" && (reach "$name" 1 true)
}

remove() {
    for host in $(ip netns list 2>/dev/null | cut -d' ' -f1); do
        case ${host#"$1"} in
        "$host" | *[!0-9s]*) ;;
        *) ip netns del "$host" ;;
        esac
    done
}

# In a host, with the names and first addresses of all that were made with it.
enter() {
    name=$1 host=$1$2
    shift 2
    known=$(ls /run/netns | sed -n "s/^$name\([0-9][0-9]*\)\$/10.77.31.\1 &/p")
    exec ip netns exec "$host" unshare --uts --mount sh -c '
        mount -t tmpfs tmpfs /dev/shm && hostname "$0" && printf "127.0.0.1 localhost\n%s\n" "$1" > /dev/shm/hosts &&
            mount --bind /dev/shm/hosts /etc/hosts && shift && exec "$@"' "$host" "$known" "$@"
}

reach() {
    name=$1
    shift
    while case $1 in -*) true ;; *) false ;; esac; do shift; done
    host=${1%]}
    shift
    enter "$name" "${host##*[!0-9]}" sh -c "$*"
}

# Makes them, or says why not.
try_make() {
    check "$@"
    why=$(make "$@" 2>&1) && return
    remove "$1"
    echo "network namespaces cannot be made here: $(echo "$why" | head -1)"
    exit 77
}

run() {
    count=$1 mpiexec=$2 ranks=$3
    shift 3
    name=tern$$h
    trap 'remove $name' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    try_make "$name" "$count"
    list=$(numbers "$count" | sed 's/^/10.77.31./' | paste -sd,)
    (enter "$name" 1 "$mpiexec" --launcher "$0 reach $name" --hosts "$list" \
        -n "$ranks" -ppn "$(((ranks + count - 1) / count))" "$@")
}

[ $# -ge 2 ] || fail "see the head of $0"
verb=$1
shift
case $verb in
make) try_make "$@" ;;
cable) cable "$@" ;;
remove) remove "$@" ;;
reach) reach "$@" ;;
run)
    [ $# -ge 4 ] || fail "run COUNT MPIEXEC RANKS PROGRAM [ARGUMENT ...]"
    run "$@"
    ;;
*) fail "$verb: must be make, cable, remove, reach or run" ;;
esac
