#!/bin/sh
# Runs a program on two hosts that are not there: two network namespaces joined by a cable (veth), each with a host name
# and shared memory of its own, so that nothing but the network is between them.
#
# usage: two-hosts.sh MPIEXEC RANKS PROGRAM [ARGUMENT ...]
#
# Exit code 77 where this may not be made here (it takes root and iproute2), else that of the job.
set -u

if [ $# -lt 3 ]; then
    echo "usage: two-hosts.sh MPIEXEC RANKS PROGRAM [ARGUMENT ...]" >&2
    exit 2
fi
mpiexec=$1 ranks=$2
shift 2
a=tern$$a b=tern$$b
scratch=$(mktemp -d) || exit 1

clean() {
    ip netns del $a 2>/dev/null
    ip netns del $b 2>/dev/null
    rm -rf "$scratch"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# What runs on a host, as ssh would be called: HOST COMMAND.
cat >"$scratch/launcher" <<END
#!/bin/sh
case \$1 in *.1) n=$a ;; *) n=$b ;; esac
shift
exec ip netns exec \$n unshare --uts --mount sh -c 'mount -t tmpfs tmpfs /dev/shm && hostname '\$n' && exec sh -c "\$*"' x "\$@"
END
chmod +x "$scratch/launcher"

make() {
    ip netns add $a && ip netns add $b &&
        ip link add tv$$a netns $a type veth peer name tv$$b netns $b &&
        ip -n $a addr add 10.77.30.1/24 dev tv$$a && ip -n $a link set tv$$a up && ip -n $a link set lo up &&
        ip -n $b addr add 10.77.30.2/24 dev tv$$b && ip -n $b link set tv$$b up && ip -n $b link set lo up &&
        "$scratch/launcher" 10.77.30.1 true && "$scratch/launcher" 10.77.30.2 true
}
why=$(make 2>&1) || {
    echo "two hosts: network namespaces cannot be made here: $(echo "$why" | head -1)"
    exit 77
}
ip netns exec $a "$mpiexec" --launcher "$scratch/launcher" --hosts 10.77.30.1,10.77.30.2 -n "$ranks" -ppn "$(((ranks + 1) / 2))" "$@"
