# Runs the PyTorch programs of this folder, in one process because importing PyTorch takes longer than they do.
#
#   python3 run.py DATA OUTPUTS NAME...   what NAME.py prints goes to OUTPUTS/NAME.txt, behind a line that says how it
#                                         was made and how close another program's numbers should come
import contextlib
import os
import runpy
import sys

import torch

here = os.path.dirname(os.path.abspath(__file__))
data, outputs, *names = sys.argv[1:]
sys.dont_write_bytecode = True
torch.set_num_threads(1)  # these are small: other threads would only wait
for name in names:
    torch.set_default_dtype(torch.float32)
    sys.argv = [name, data]
    path = os.path.join(outputs, name + ".txt")
    with open(path, "w") as file, contextlib.redirect_stdout(file):
        print("", end="", flush=True)
        runpy.run_path(os.path.join(here, name + ".py"), run_name="__main__")
    with open(path) as file:
        printed = file.read()
    tolerance = "1e-10" if torch.get_default_dtype() == torch.float64 else "1e-4"
    with open(path, "w") as file:
        file.write(f"# {name}.py with PyTorch {torch.__version__.split('+')[0]}; relative tolerance {tolerance}\n{printed}")
