"""Prints docs/backends.md's table of levels from `ds4py.proof`."""

from ds4py.proof import BACKENDS, OPS, proof

print("| op | " + " | ".join(BACKENDS) + " |")
print("| --- |" + " --- |" * len(BACKENDS))
for op in OPS:
    print(f"| {op} | " + " | ".join(str(proof(op, backend)) for backend in BACKENDS) + " |")
