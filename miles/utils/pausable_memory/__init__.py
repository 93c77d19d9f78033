"""Memory that can be paused: a CPU stand-in for the package `torch_memory_saver`.

Pausing releases the pages behind a tensor and keeps its address. Reading a paused tensor
raises nothing: the reader waits in the kernel until somebody resumes the memory, which may
be never. Resuming gives the old bytes back where the region keeps a backup, and zeros
where it does not.

    from miles.utils.pausable_memory import torch_memory_saver

    with torch_memory_saver.region("weights", enable_cpu_backup=True):
        layer = torch.nn.Linear(8, 8)
    torch_memory_saver.pause("weights")
    torch_memory_saver.get_cpu_backup(layer.weight)  # the bytes as they were
    layer.weight.sum()                               # waits, without an error
    torch_memory_saver.resume("weights")

Two mechanisms make a read wait: `userfaultfd` (first choice) and `page_protection` (where
a container's system-call filter refuses the first).

What this cannot imitate: a system call that is handed a paused buffer (`write(2)`,
`send(2)`) fails with EFAULT instead of waiting, because only accesses from user mode wait.
A forked child sees zeros instead of waiting; start workers by exec.
"""

from miles.utils.pausable_memory.mechanism import PausingRefusedError
from miles.utils.pausable_memory.saver import TorchMemorySaver, torch_memory_saver

__all__ = ["PausingRefusedError", "TorchMemorySaver", "torch_memory_saver"]
