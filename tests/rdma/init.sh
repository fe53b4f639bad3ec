#!/bin/sh
# The first process of the kernels that run.py boots: adapters in software, then on the first of them inside.py, on the second
# what runs commands for it. The tree is seen at the path that it has outside, which the kernel's command line names (TREE=), as it
# does which of the two kernels it is (HOST=) and the words for inside.py (WORDS=, with commas between).
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root PYTHONDONTWRITEBYTECODE=1
mount -t proc proc /proc
mount -t sysfs sys /sys
mountpoint -q /dev || mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/infiniband
for place in /tmp /run /dev/shm; do mount -t tmpfs tmpfs $place; done
mkdir -p "$TREE"
mount -t hostfs none "$TREE" -o "$TREE"
hostname uml$HOST
ulimit -l unlimited
ip link set lo up
ip link add va type veth peer name vb
ip addr add 10.9.0.1/24 dev va
ip link set va up
ip link set vb up
# A dummy interface of its own: siw does not take the loopback.
ip link add dsiw type dummy
ip addr add 10.9.1.1/24 dev dsiw
ip link set dsiw up
# Two cables to the other kernel.
for cable in 0 1; do
    ip addr add 10.9.$((2 + cable)).$HOST/24 dev vec$cable
    ip link set vec$cable up
    rdma link add rxe$((1 + cable)) type rxe netdev vec$cable
done
# A third for siw alone: an address has one adapter for rdma_cm.
ip addr add 10.9.4.$HOST/24 dev vec2
ip link set vec2 up
rdma link add siw1 type siw netdev vec2
rdma link add rxe0 type rxe netdev va
rdma link add siw0 type siw netdev dsiw
for device in /sys/class/infiniband_verbs/uverbs*; do
    name=/dev/infiniband/${device##*/}
    [ -e "$name" ] || mknod "$name" c $(tr : ' ' <"$device/dev")
done
[ -e /dev/infiniband/rdma_cm ] || mknod /dev/infiniband/rdma_cm c $(tr : ' ' </sys/class/misc/rdma_cm/dev)
"$TREE/tests/rdma/shell.py" --serve 10.9.2.$HOST &
if [ "$HOST" = 1 ]; then
    python3 "$TREE/tests/rdma/inside.py" $(echo "$WORDS" | tr , ' ')
    "$TREE/tests/rdma/shell.py" 10.9.2.2 --end
else
    wait
fi
echo o >/proc/sysrq-trigger
sleep 60
