#!/usr/bin/env python3
"""In place of ssh between the kernels of run.py: `shell.py HOST WORDS…` has a shell of that kernel run the words, with the input
and the output of this process; `shell.py --serve ADDRESS` is the other end, until it is told `--end`. Whoever can connect may
run anything: nobody else can, on a cable between two programs."""

import socket
import subprocess
import sys
import threading

PORT = 7000


def serve(address):
    listening = socket.create_server((address, PORT))
    while True:
        conversation, _ = listening.accept()
        command = conversation.makefile("rb", buffering=0).readline().decode().rstrip("\n")
        if command == "--end":
            return
        threading.Thread(target=run, args=(conversation, command), daemon=True).start()


def run(conversation, command):
    with conversation:
        subprocess.run(["sh", "-c", command], stdin=conversation, stdout=conversation, stderr=conversation)


def send(conversation):
    while data := sys.stdin.buffer.raw.read(65536):
        conversation.sendall(data)
    conversation.shutdown(socket.SHUT_WR)


def main():
    words = [word for word in sys.argv[1:] if word != "-x"]
    if words[0] == "--serve":
        return serve(words[1])
    with socket.create_connection((words[0], PORT)) as conversation:
        conversation.sendall(" ".join(words[1:]).encode() + b"\n")
        threading.Thread(target=send, args=(conversation,), daemon=True).start()
        while data := conversation.recv(65536):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
