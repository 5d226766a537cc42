"""Write frozen.npz: the current results of all cases."""

import os
from pathlib import Path


def main():
    """Run all cases and write frozen.npz and platform.json to this folder."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # before NumPy is imported
    import json

    import numpy as np
    from cases import CASES, platform, run

    found = {f"{name}/{key}": array for name in CASES for key, array in sorted(run(name).items())}
    path = Path(__file__).parent / "frozen.npz"
    np.savez_compressed(path, **found)
    path.with_name("platform.json").write_text(json.dumps(platform()) + "\n", encoding="utf-8")
    print(f"{len(CASES)} cases, {len(found)} arrays, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
