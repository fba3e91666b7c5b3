"""make presets: the defaults of trainer_defaults.json beside those that the pinned packages have.

Downloads the wheels of each preset's program (no dependency, nothing is imported), finds the class attribute that a
source names (file.py:Class.attribute) in the text, and compares. A source that is a function is listed, not read.
NEWEST=1 takes the newest releases, so that a new one shows its changes. Exit status 1 if a default differs.
"""
import ast, json, os, pathlib, re, subprocess, sys, tempfile, zipfile

NAMES = {"LLaMA-Factory": "llamafactory"}
HERE = pathlib.Path(__file__).parent
CALLED = {("recompute", "True"): "full", ("recompute", "False"): "none"}


def wheels(program, folder):
    """The files of every package of a program, by path."""
    files = {}
    for package in program.split(", "):
        name, _, version = package.partition(" ")
        name = NAMES.get(name, name)
        if name in ("openpi", "diffusers"):  # a commit is on no index
            continue
        want = name if os.environ.get("NEWEST") else f"{name}=={version}"
        into = folder / name
        done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary=:none:", "--python-version", "3.12", "--only-binary=:all:", "-d", into, want], capture_output=True, text=True)
        if done.returncode:
            print(f"  {want}: not to be had: {done.stderr.strip().splitlines()[-1] if done.stderr else ''}")
            continue
        for wheel in into.glob("*.whl"):
            archive = zipfile.ZipFile(wheel)
            files |= {path: archive for path in archive.namelist()}
    return files


def default(text, owner, attribute):
    """The default of a class attribute, as Python writes it; None if it is no constant."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.ClassDef) or node.name != owner:
            continue
        for line in node.body:
            if isinstance(line, ast.AnnAssign) and getattr(line.target, "id", "") == attribute and line.value is not None:
                value = line.value
                if isinstance(value, ast.Call):  # field(default=…), Field(default=…)
                    value = next((k.value for k in value.keywords if k.arg == "default"), value)
                return str(value.value) if isinstance(value, ast.Constant) else ast.unparse(value)
    return None


def main():
    differ = 0
    for preset in json.loads((HERE / "trainer_defaults.json").read_text()):
        print(preset["name"], "of", preset["program"])
        with tempfile.TemporaryDirectory() as folder:
            files = wheels(preset["program"], pathlib.Path(folder))
            for row in preset.get("sets", []) + preset.get("facts", []):
                name, source = row.get("field") or row["name"], row["source"]
                found = re.match(r"^([\w/]+\.py):(\w+)\.(\w+)", source)
                if not found or found[1] not in files:
                    print(f"  {name:28} {row['value']:28} by hand: {source}")
                    continue
                got = default(files[found[1]].read(found[1]).decode(), found[2], found[3])
                if got is None or "(" in got or got.startswith("default_"):
                    print(f"  {name:28} {row['value']:28} by hand: {source}")
                    continue
                same = got == row.get("raw", row["value"]) or CALLED.get((name, got)) == row["value"]
                differ += not same
                print(f"  {name:28} {row['value']:28} {'ok' if same else 'NOW ' + got}")
    sys.exit(differ > 0)


main()
