"""Runs notebooks from the first cell to the last, each in a kernel of its own.

    run.py check NOTEBOOK...     compares the outputs with the stored ones
    run.py update NOTEBOOK...    stores the outputs

Numbers are compared to the digits that are shown: the last one may differ by one, integers must be equal. Figures must
be well-formed and have the same elements, words and classes; coordinates may differ by half a pixel.
The last line is `N passed, M failed`, with one check for each cell and one for the notebook.
"""

import concurrent.futures
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError

NUMBER = re.compile(r'(?<![\w.])-?\d+(?:\.\d*)?(?:e[-+]?\d+)?', re.I)


def last_digit(number):
    """The weight of the last digit shown; 0 for an integer."""
    mantissa, _, exponent = number.lower().partition('e')
    _, point, digits = mantissa.partition('.')
    return 10.0 ** (int(exponent or 0) - len(digits)) if point or exponent else 0.0


def same_text(ours, stored):
    words = lambda text: NUMBER.sub('#', ' '.join(re.sub(r'([\[\](,)])', r' \1 ', text).split()))
    return words(ours) == words(stored) and all(
        abs(float(a) - float(b)) <= 1.001 * max(last_digit(a), last_digit(b))
        for a, b in zip(NUMBER.findall(ours), NUMBER.findall(stored)))


def figure_fault(ours, stored):
    try:
        pairs = [(ElementTree.fromstring(ours), ElementTree.fromstring(stored))]
    except ElementTree.ParseError as e:
        return f'a figure is not well-formed: {e}'
    while pairs:
        a, b = pairs.pop()
        if a.tag != b.tag or len(a) != len(b) or a.attrib.keys() != b.attrib.keys():
            return f'a figure has other elements at <{a.tag.rpartition("}")[2]}>'
        if not same_text(a.text or '', b.text or ''):
            return f"a figure says '{(a.text or '').strip()}', stored is '{(b.text or '').strip()}'"
        for name, x in a.attrib.items():
            y = b.attrib[name]
            if NUMBER.sub('#', x) != NUMBER.sub('#', y) or name == 'class' and x != y or any(
                    abs(float(p) - float(q)) > 0.5 for p, q in zip(NUMBER.findall(x), NUMBER.findall(y))):
                return f'a figure has {name}={x!r}, stored is {y!r}'
        pairs += zip(a, b)
    return ''


def merged(outputs):
    """Pieces of one stream that follow each other are one output."""
    result = []
    for output in outputs:
        if output.output_type == 'stream' and result and result[-1].get('name') == output.name:
            result[-1]['text'] += output.text
        else:
            result.append(output)
    return result


def output_fault(ours, stored):
    """What differs between the outputs of a cell and the stored ones; '' if nothing does."""
    shape = lambda outputs: [(o.output_type, o.get('name'), *sorted(o.get('data', {}))) for o in outputs]
    if shape(ours) != shape(stored):
        return f'the outputs are of the kinds {shape(ours)}, stored are {shape(stored)}'
    for a, b in zip(ours, stored):
        for kind, x in a.get('data', {'text': a.get('text', '')}).items():
            y = b.get('data', {'text': b.get('text', '')})[kind]
            fault = figure_fault(x, y) if kind == 'image/svg+xml' else '' if same_text(x, y) else \
                f'printed is\n{x.rstrip()}\nstored is\n{y.rstrip()}'
            if fault:
                return fault
    return ''


def form_fault(notebook):
    """What a notebook of this folder must have and this one lacks."""
    code = [cell for cell in notebook.cells if cell.cell_type == 'code']
    if notebook.metadata.get('kernelspec', {}).get('name') != 'xcpp20':
        return "its kernel is not 'xcpp20'"
    if not code or code[0].source.strip() != '#include "setup.hpp"':
        return 'its first cell is not #include "setup.hpp"'
    return '' if any('image/svg+xml' in o.get('data', {}) for cell in code for o in cell.outputs) else 'it has no picture'


def run(mode, path):
    stored, notebook = nbformat.read(path, as_version=4), nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == 'code':
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(notebook, timeout=120, kernel_name='xcpp20', record_timing=False,
                            shutdown_kernel='graceful', resources={'metadata': {'path': os.path.dirname(path) or '.'}})
    faults, stopped = [], ''
    try:
        client.execute()
    except (CellExecutionError, DeadKernelError, TimeoutError, RuntimeError) as e:
        stopped = f'{type(e).__name__}: {e}'
    cells = [(ours, cell) for ours, cell in zip(notebook.cells, stored.cells) if cell.cell_type == 'code']
    for number, (ours, cell) in enumerate(cells, 1):
        ours.outputs = merged(ours.outputs)
        errors = [line for o in ours.outputs if o.output_type == 'error' for line in o.traceback]
        fault = output_fault(ours.outputs, cell.outputs) if mode == 'check' else ''
        if errors:
            faults.append(f'cell {number} failed: ' + '\n'.join(errors))
        elif stopped and ours.execution_count is None:
            faults.append(f'cell {number} did not run')
        elif fault:
            faults.append(f'cell {number}: {fault}')
    faults += [fault for fault in [stopped if not faults else form_fault(notebook)] if fault]
    if mode == 'update' and not faults:
        nbformat.write(notebook, path)
    return path, max(len(cells) + 1 - len(faults), 0), faults


def main():
    mode, paths, passed, failed = sys.argv[1], sys.argv[2:], 0, 0
    with concurrent.futures.ProcessPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        for path, good, faults in pool.map(run, [mode] * len(paths), paths):
            passed, failed = passed + good, failed + len(faults)
            print(f'{"FAILED" if faults else "ok"}: {path}', *('    ' + f.replace('\n', '\n    ') for f in faults), sep='\n', flush=True)
    print(f'{passed} passed, {failed} failed')
    sys.exit(failed > 0 or not paths)


if __name__ == '__main__':
    main()
