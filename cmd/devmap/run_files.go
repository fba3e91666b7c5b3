package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// written is a file or a folder that a run writes.
type written struct {
	flag, path string
	folder     bool
	shared     bool // by several plans
}

// runOutputs are the files and folders that a run writes, by flag.
type runOutputs struct{ *ask.Request }

// all lists the outputs of the flags.
func (outputs runOutputs) all(settings *planRun) []written {
	dump := &settings.settings.Dump
	all := []written{
		{flag: "output", path: outputs.Output, shared: true},
		{flag: "report", path: outputs.Report, shared: true},
		{flag: "dump logits", path: dump.Logits},
		{flag: "dump hidden", path: dump.Hidden},
		{flag: "dump grads", path: dump.Grads},
		{flag: "save", path: outputs.Run.Save, folder: true},
		{flag: "save-state", path: outputs.Run.SaveState, folder: true},
	}
	var asked []written
	for _, one := range all {
		if one.path != "" {
			asked = append(asked, one)
		}
	}
	return asked
}

// spare refuses outputs before anything runs: over a file that is read, two in one place, or
// in a folder that does not exist.
func (outputs runOutputs) spare(cmd *cobra.Command, runs []planRun) error {
	if err := outputs.readOnce(runs); err != nil {
		return err
	}
	named := outputs.all(&runs[0])
	for i, one := range named {
		if len(runs) > 1 && !one.shared {
			return out.Usagef("--%s %q: %d plans would write it: run them one by one", one.flag, one.path, len(runs))
		}
		for _, other := range named[:i] {
			if err := apart(other, one); err != nil {
				return err
			}
		}
	}
	for _, one := range named {
		if err := outputs.spareInputs(cmd, one, runs); err != nil {
			return err
		}
		if err := free(one); err != nil {
			return err
		}
	}
	return nil
}

// readOnce refuses token ids from a pipe for several plans: the first plan would read them all.
func (outputs runOutputs) readOnce(runs []planRun) error {
	name := outputs.Run.Tokens
	if len(runs) < 2 || name == "" {
		return nil
	}
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return out.Usagef("--tokens %q: %d plans would read it, and it can be read once: name a file, or run them one by one", name, len(runs))
	}
	return nil // opening it reports other errors
}

func (outputs runOutputs) spareInputs(cmd *cobra.Command, one written, runs []planRun) error {
	for i := range runs {
		var inputs []string
		for _, name := range []string{"state.json", "state.safetensors"} {
			inputs = append(inputs, filepath.Join(outputs.Run.Resume, name))
		}
		for _, model := range []string{outputs.Model, runs[i].plan.Model.Source} {
			if err := out.Spare(cmd, out.Written{Flag: one.flag, Path: one.path}, model, inputs...); err != nil {
				return err
			}
		}
	}
	return out.Spare(cmd, out.Written{Flag: one.flag, Path: one.path, Kinds: []string{"report", "certificate", "page"}}, "")
}

// apart refuses two outputs if one is the other, or in its folder.
func apart(first, second written) error {
	one, other := located(first.path), located(second.path)
	same := one == other
	if a, err := os.Stat(one); err == nil && !same {
		b, err := os.Stat(other)
		same = err == nil && os.SameFile(a, b) && a.Mode().IsRegular()
	}
	within := first.folder && inside(other, one) || second.folder && inside(one, other)
	switch {
	case same:
		return out.Usagef("--%s and --%s both name %q", first.flag, second.flag, second.path)
	case within:
		return out.Usagef("--%s %q and --%s %q: the one lies in the other, which is to be new", first.flag, first.path, second.flag, second.path)
	}
	return nil
}

// located returns a path for comparison: with links resolved, as far as it exists.
func located(path string) string {
	whole, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if found, err := filepath.EvalSymlinks(whole); err == nil {
		return found
	}
	if folder, err := filepath.EvalSymlinks(filepath.Dir(whole)); err == nil {
		return filepath.Join(folder, filepath.Base(whole))
	}
	return whole
}

func inside(path, folder string) bool {
	return strings.HasPrefix(path, folder+string(filepath.Separator))
}

// free refuses an output that cannot be written. A run takes long, and would find that out only at
// its end.
func free(one written) error {
	info, err := os.Stat(filepath.Dir(one.path))
	switch {
	case err != nil:
		return fmt.Errorf("--%s: cannot write %q: %w", one.flag, one.path, err)
	case !info.IsDir():
		return fmt.Errorf("--%s: cannot write %q: %q is not a folder", one.flag, one.path, filepath.Dir(one.path))
	}
	info, err = os.Stat(one.path)
	switch {
	case err != nil:
		return nil //nolint:nilerr // it does not exist yet, or writing reports the error
	case !one.folder && info.IsDir():
		return out.Usagef("--%s %q: it is a folder: name a file", one.flag, one.path)
	case one.folder && !info.IsDir():
		return out.Usagef("--%s %q: it is a file: name a new folder", one.flag, one.path)
	case one.folder:
		entries, err := os.ReadDir(one.path)
		if err == nil && len(entries) > 0 {
			return out.Usagef("--%s %q: it is not empty, it holds %q: name a new folder", one.flag, one.path, entries[0].Name())
		}
		if err != nil {
			return fmt.Errorf("--%s: %w", one.flag, err)
		}
	}
	return nil
}
