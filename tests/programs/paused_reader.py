"""Reads paused memory and waits; its standard input says what to do meanwhile.

Says `reading <thread id>` before the read, `pong` to each `ping`, and after `resume` how
the read ended. Arguments: backend, backup target, disk folder, way to read (`sum` in a
thread, or `tobytes`, which holds the GIL), and system calls to refuse.
"""

import ctypes
import struct
import sys
import threading

import torch

from miles.utils.pausable_memory import torch_memory_saver

SYSCALLS = {"userfaultfd": (323, None), "mprotect": (10, 2)}


def say(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def refuse(names):
    """Have the kernel answer EPERM, mprotect only where it asks for PROT_NONE (argument 2)."""
    program = [(0x20, 0, 0, 0)]  # load the number
    for name in names:
        number, zero_argument = SYSCALLS[name]
        if zero_argument is None:
            program += [(0x15, 0, 1, number), (0x06, 0, 0, 0x00050001)]
        else:
            program += [
                (0x15, 0, 4, number),
                (0x20, 0, 0, 16 + 8 * zero_argument),
                (0x15, 0, 1, 0),
                (0x06, 0, 0, 0x00050001),
                (0x20, 0, 0, 0),
            ]
    program.append((0x06, 0, 0, 0x7FFF0000))  # allow
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.c_char_p(header), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


def main(backend, target, disk_dir, way, *refused):
    torch.set_num_threads(1)
    refuse(refused)
    torch_memory_saver.configure(backend, target, disk_dir, disk_chunk_mb=1)
    with torch_memory_saver.region("weights", enable_cpu_backup=True):
        weights = torch.arange(700_000, dtype=torch.float64)
    before = weights.clone()
    torch_memory_saver.pause("weights")
    read_bytes = {
        "sum": lambda: weights.clone().numpy().tobytes(),
        "tobytes": lambda: weights.numpy().tobytes(),
    }[way]
    results = []

    def read():
        say(f"reading {threading.get_native_id()}")
        results.append(read_bytes() == before.numpy().tobytes())

    reader = threading.Thread(target=read, name="reader", daemon=True)
    reader.start()
    for line in sys.stdin:
        if line == "ping\n":
            say("pong")
        else:
            torch_memory_saver.resume("weights")
            reader.join(timeout=30)
            say(f"{torch_memory_saver.mechanism_name} {results}")
            return


main(*sys.argv[1:])
