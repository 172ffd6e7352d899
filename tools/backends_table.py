"""Prints the table of backend status for docs/backends.md, from `ds4py.runtime.backend_status`."""

from ds4py.runtime.backend_status import BACKENDS, OPS, backend_status

print("| op | " + " | ".join(BACKENDS) + " |")
print("| --- |" + " --- |" * len(BACKENDS))
for op in OPS:
    print(f"| {op} | " + " | ".join(str(backend_status(op, backend)) for backend in BACKENDS) + " |")
