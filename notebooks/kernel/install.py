"""Writes what Jupyter and the kernel read, into one folder: install.py FOLDER, settings in the environment."""

import json
import os
import sys

folder = os.path.abspath(sys.argv[1])
here = os.path.dirname(os.path.abspath(__file__))
spec = os.path.join(folder, 'share', 'jupyter', 'kernels', 'xcpp20')
os.makedirs(spec, exist_ok=True)
os.makedirs(os.path.join(folder, 'home', 'ipython'), exist_ok=True)


def write(path, content):
    with open(path, 'w') as file:
        json.dump(content, file, indent=1)


write(os.path.join(folder, 'config.json'),
      {'host': os.path.join(folder, 'host'), 'compile': os.environ['XCPP20_COMPILE']})
write(os.path.join(spec, 'kernel.json'), {
    'argv': [sys.executable, os.path.join(here, 'kernel.py'), '-f', '{connection_file}', '--log-level=ERROR'],
    'display_name': 'C++20 (tapehead)', 'language': 'C++', 'interrupt_mode': 'signal',
    'env': {'XCPP20_CONFIG': os.path.join(folder, 'config.json'), 'IPYTHONDIR': os.path.join(folder, 'home', 'ipython'),
            'PYTHONDONTWRITEBYTECODE': '1'}})
