#!/bin/sh
# In place of ssh: runs the command that follows the host on this one. FAKE says what goes wrong; if FAKE_HOST is set, on that
# host alone, and FAKE_ELSE on the others.
host=$1
shift
[ "${FAKE_HOST:-$host}" = "$host" ] || FAKE=$FAKE_ELSE
case $FAKE in
silent) exec sleep 1000 ;;
broken) exit 3 ;;
broken-later)
    sleep 1
    exit 3
    ;;
known)
    # Tells which process the agent is.
    echo $$ >"$FAKE_PLACE/$host.part"
    mv "$FAKE_PLACE/$host.part" "$FAKE_PLACE/$host.pid"
    exec $*
    ;;
other-secret) sed 's/ [0-9a-f]\{32\} / 00112233445566778899aabbccddeeff /' | sh -c "$*" ;;
late)
    # Shows what it was given, and waits until it may go on.
    read -r line
    echo "$line" >"$FAKE_PLACE/$host.part"
    mv "$FAKE_PLACE/$host.part" "$FAKE_PLACE/$host"
    until [ -e "$FAKE_PLACE/go" ]; do sleep 0.02; done
    echo "$line" | sh -c "$*"
    ;;
*) exec sh -c "$*" ;;
esac
