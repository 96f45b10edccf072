"""Kernels for other machines: formats, tags of wheels, rounding, and arm64 itself where QEMU is."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT, has_numba
from two_forests import NEEDED, SCRIPT

from gpuforest.compiler import objects, processors
from gpuforest.compiler.build import compile_one
from gpuforest.compiler.families import variants

NAME = "kernels.bag.numba.in_bag"
ARM64, SUMS = "aarch64-unknown-linux-gnu", "kernels.gradients.numba.residual_bits"
HEADS = {  # of object code: format, and family of processors
    ARM64: b"\x7fELF\2\1\1" + bytes(9) + b"\1\0\xb7\0",
    "arm64-apple-macosx11.0": b"\xcf\xfa\xed\xfe\x0c\0\0\1",
    "x86_64-apple-macosx11.0": b"\xcf\xfa\xed\xfe\7\0\0\1",
    "x86_64-w64-windows-gnu": b"\x64\x86",
}
CUSTOMS = ("manylinux2014", "manylinux_2_17", "musllinux_1_2")  # of Linux's C libraries
needs_numba = pytest.mark.skipif(not has_numba, reason="no numba here, which compiles the kernels")


def test_the_file_of_machine_code_is_named_by_its_format():
    elf, macho = b"\x7fELF" + bytes(12), b"\xcf\xfa\xed\xfe" + bytes(8)
    for code, suffix in (
        (elf + b"\3", ".so"), (elf + b"\1", ".o"), (macho + b"\6", ".dylib"), (macho + b"\1", ".o"),
        (b"MZ\x90", ".dll"), (b"\x64\x86", ".o"), (b"", ".o"),
    ):  # fmt: skip
        assert objects.suffix_of(code) == suffix


@pytest.mark.parametrize("suffix", [".so", ".dll", ".dylib", ".o"])
def test_nothing_follows_the_signature_of_a_library_of_macos(tmp_path, suffix):
    path = tmp_path / f"kernel{suffix}"
    objects.save(path, NAME, b"code")
    assert (path.read_bytes() == b"code") == (suffix == ".dylib")
    assert objects.unpacked(NAME, objects.content_of(path)) == b"code"
    path.write_bytes(b"o" + path.read_bytes()[1:])
    with pytest.raises(ValueError, match="digest"):
        objects.unpacked(NAME, objects.content_of(path))


def test_a_wheels_tag_follows_from_the_machine(monkeypatch):
    pytest.importorskip("hatchling", reason="no hatchling here, which builds wheels")
    tags = pytest.importorskip("packaging.tags")
    monkeypatch.syspath_prepend(ROOT)
    build = importlib.import_module("hatch_build")
    for machine, system, names in (
        ("x86_64", "linux", {f"{c}_x86_64" for c in CUSTOMS}),
        ("arm64", "darwin", {"macosx_11_0_arm64"}),
        ("AMD64", "win32", {"win_amd64"}),
    ):  # fmt: skip
        monkeypatch.setattr(build.platform, "machine", lambda machine=machine: machine)
        monkeypatch.setattr(build.sys, "platform", system)
        tag = f"py3-none-{build.OTHERS[build.this_machine()]}"
        assert {each.platform for each in tags.parse_tag(tag)} == names
    assert {*HEADS} < {*build.OTHERS}


@needs_numba
@pytest.mark.deep
@pytest.mark.parametrize("triple", HEADS)
def test_kernels_are_compiled_for_other_machines(triple):
    command = [sys.executable, "-m", "gpuforest.compiler.build", "native", NAME, "--object"]
    found = subprocess.check_output(command, env=os.environ | {processors.TRIPLE: triple})
    assert found.startswith(HEADS[triple])
    code = objects.unpacked(NAME, found)
    assert code is not None
    assert b"gpuforest_kernels_bag_numba_in_bag" in code


@needs_numba
def test_arm64_rounds_each_product(monkeypatch):
    """Its processors have instructions that multiply and add and round once."""
    from gpuforest.compiler import compile

    monkeypatch.setenv(processors.TRIPLE, ARM64)
    module = compile.module_of(*variants()[SUMS])
    machine = processors.target_machine(processors.all_levels()[0], library=True)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    compile.optimise(module, machine, plain=False)
    text = machine.emit_assembly(module)
    assert len(re.findall(r"\tfmul\t", text)) > 10
    assert not re.findall(r"\tfn?m(?:add|sub|la|ls)\t", text)


@needs_numba
@pytest.mark.skipif(not shutil.which("readelf"), reason="no readelf here")
def test_kernels_call_memcpy_and_memset_alone():
    paths = {path: name for name in variants() for path, _ in [*objects.usable(name)][:1]}
    libraries = [str(path) for path in paths if path.suffix == ".so"]
    if not libraries:
        pytest.skip("no shared libraries here")
    said = subprocess.run(
        ["readelf", "-dW", "--dyn-syms", *libraries], capture_output=True, text=True, check=True
    ).stdout
    assert {*re.findall(r" UND (\w\S*)", said)} <= {"memcpy", "memset"}
    assert "(NEEDED)" not in said


@needs_numba
@pytest.mark.deep
def test_arm64_grows_the_same_forests(tmp_path):
    """`.ci/arm64 FOLDER` makes the environment, and compares all forests of the record."""
    python = Path(os.environ.get("GPUFOREST_ARM64", "nowhere"), "python").absolute()
    if not (python.exists() and shutil.which("aarch64-linux-gnu-gcc")):
        pytest.skip("no arm64 Python under QEMU here: `.ci/arm64 FOLDER`, GPUFOREST_ARM64=FOLDER")
    digests = []
    for triple, command, run in (
        (None, None, sys.executable),
        (ARM64, "aarch64-linux-gnu-gcc", python),
    ):
        with pytest.MonkeyPatch.context() as there:
            if triple:
                there.setenv(processors.TRIPLE, triple)
                there.setenv("CC", command)
            target = processors.all_levels()[-1]
            folder = tmp_path / target.name
            folder.mkdir()
            for name in variants():
                if name.startswith(NEEDED):
                    (code,) = compile_one(name, [target])
                    objects.save(folder / objects.file_of(name, target, code), name, code)
            # as if all were there, which is asked where Numba is not
            all_ = folder / objects.file_of(objects.ALL, target, b"")
            objects.save(all_, objects.ALL, b"")
        command = [run, "-P", "-c", SCRIPT, folder, target.name]
        digests.append(subprocess.check_output(command, env=os.environ | {"PYTHONPATH": str(ROOT)}))
    assert digests[0] == digests[1]
    assert len(digests[0]) == 65
