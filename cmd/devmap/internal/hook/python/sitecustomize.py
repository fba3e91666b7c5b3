"""Of `devmap watch`: has torchpeaks.py look at torch where a program imports it, and makes way for the program's own
sitecustomize. Python's site module imports the first module of this name on sys.path, before the program begins.

Until torch is imported it costs a comparison an import. The syntax is that of every Python there is, as any of them may
be a child of the command; before 3.8 it does nothing but make way.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class Finder(object):
    """Finds torch as the other finders do, and has its loader say when it is there."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        for finder in list(sys.meta_path):
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                self.watch(spec.loader)
                return spec
        return None

    def watch(self, loader):
        """The loader stays what it is: this instance's exec_module goes first, once."""
        if not hasattr(loader, "exec_module"):
            return  # a folder that is only named torch
        load = loader.exec_module

        def exec_module(module):
            del loader.exec_module
            load(module)
            if self in sys.meta_path:  # where the import failed the next one is watched too
                sys.meta_path.remove(self)
            look_at(module)

        try:
            loader.exec_module = exec_module
        except AttributeError:
            pass  # at exit torch is found all the same


looked = []


def look_at(torch):
    """Whatever goes wrong here is none of the program's."""
    try:
        if not looked and hasattr(torch, "_C"):
            looked.append(torch)
            import importlib.util

            spec = importlib.util.spec_from_file_location("_devmap_torchpeaks", os.path.join(HERE, "torchpeaks.py"))
            peaks = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(peaks)
            looked.append(peaks.begin(torch, os.environ["DEVMAP_WATCH_OUT"], os.environ.get("DEVMAP_WATCH_SNAPSHOT", "")))
    except Exception:
        pass


def at_exit():
    """Registered before anything of the program's, so that it runs after all of that."""
    if "torch" in sys.modules:
        look_at(sys.modules["torch"])
    if len(looked) == 2:
        looked[1].end()


def begin():
    import atexit

    atexit.register(at_exit)
    if "torch" in sys.modules:  # a .pth file of site-packages imported it
        look_at(sys.modules["torch"])
    else:
        sys.meta_path.insert(0, Finder())


if sys.version_info >= (3, 8) and os.environ.get("DEVMAP_WATCH_OUT"):
    begin()
# The program's own, or the error that site expects where there is none. site's import ends with what stands in
# sys.modules under the name.
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != HERE]
sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: E402, F401
