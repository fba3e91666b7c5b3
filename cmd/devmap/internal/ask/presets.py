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


def default(text, names):
    """The default of a class attribute or of a function's argument, as Python writes it; None if it is no constant."""
    node = ast.parse(text)
    for name in names[:-1]:
        node = next((inner for inner in ast.walk(node) if isinstance(inner, (ast.ClassDef, ast.FunctionDef)) and inner.name == name), None)
        if node is None:
            return None
    value = None
    if isinstance(node, ast.FunctionDef):
        given = node.args.args[len(node.args.args) - len(node.args.defaults):] + node.args.kwonlyargs
        value = next((v for argument, v in zip(given, node.args.defaults + node.args.kw_defaults) if argument.arg == names[-1]), None)
    else:
        for line in node.body:
            if isinstance(line, ast.AnnAssign) and getattr(line.target, "id", "") == names[-1] and line.value is not None:
                value = line.value
    if isinstance(value, ast.Call):  # field(default=…), Field(default=…)
        value = next((k.value for k in value.keywords if k.arg == "default" or k.arg == "default_factory" and not isinstance(k.value, ast.Lambda)), value)
    return None if value is None else str(value.value) if isinstance(value, ast.Constant) else ast.unparse(value)


def setting(text, names):
    """The value of a key of a YAML file that is written in lines, as it stands there; None if there is none."""
    at = 0
    for line in text.splitlines():
        found = re.match(r"^( *)([\w]+): ?(.*?)( *#.*)?$", line)
        if not found or len(found[1]) // 2 > at:
            continue
        at = min(at, len(found[1]) // 2)
        if found[2] != names[at]:
            continue
        if at == len(names) - 1:
            return found[3]
        at += 1
    return None


def main():
    differ = 0
    for preset in json.loads((HERE / "trainer_defaults.json").read_text()):
        print(preset["name"], "of", preset["program"])
        with tempfile.TemporaryDirectory() as folder:
            files = wheels(preset["program"], pathlib.Path(folder))
            for row in preset.get("sets", []) + preset.get("facts", []):
                name, source = row.get("field") or row["name"], row["source"]
                found = re.match(r"^([\w/]+\.py):(\w+(?:\.\w+)+)|^([\w/]+\.yaml):([\w.]+)", source)
                path = found and (found[1] or found[3])
                if not found or path not in files:
                    print(f"  {name:28} {row['value']:28} by hand: {source}")
                    continue
                text = files[path].read(path).decode()
                got = default(text, found[2].split(".")) if found[1] else setting(text, found[4].split("."))
                if got is None or found[1] and "(" in got or got.startswith("default_"):
                    print(f"  {name:28} {row['value']:28} by hand: {source}")
                    continue
                same = got == row.get("raw", row["value"]) or CALLED.get((name, got)) == row["value"]
                differ += not same
                print(f"  {name:28} {row['value']:28} {'ok' if same else 'NOW ' + got}")
    sys.exit(differ > 0)


main()
