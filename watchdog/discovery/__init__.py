"""Which processes of this host belong to which job, and as what. Standard library only.

`processes` reads `/proc`, `roles` says what each process is, `jobs` tells jobs apart, `places`
gives ranks and engine numbers, `selection` is what the user chooses among them. Nothing here
opens, stops or signals a process.
"""
