package hf

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// share settles the parameters that the config ties (modeling_utils.py:
// tie_weights). One that is stored fills the others. Where several are
// stored, the framework ties those whose values are equal and no others; here
// a few pages of each are compared. A T5 config that says the head is not
// tied (v1.1: T5Config ties it all the same) settles it without a look.
func (a *assignment) share() error {
	var kept [][]string
	for _, group := range a.ties {
		group, err := a.shareGroup(group)
		if err != nil {
			return err
		}
		if len(group) > 1 {
			kept = append(kept, group)
		}
	}
	a.ties = kept
	return nil
}

// shareGroup returns the names that stay tied.
func (a *assignment) shareGroup(group []string) ([]string, error) {
	first := slices.IndexFunc(group, func(n string) bool { return len(a.state[n].pieces) > 0 })
	if first < 0 {
		return group, nil
	}
	source := a.state[group[first]]
	var tied, copies []string
	for _, name := range group {
		f := a.state[name]
		if f != source && len(f.pieces) > 0 {
			same, err := a.sameStored(source, f)
			if err != nil {
				return nil, err
			}
			if !same {
				a.warn("the config ties %q to %q, but the files hold both and they differ: counted apart, as the framework loads them", name, source.name)
				continue
			}
			copies = append(copies, name)
		}
		f.shared = true
		t := f.tensor
		t.DType, t.Shape, t.Parts = source.tensor.DType, source.tensor.Shape, source.tensor.Parts
		tied = append(tied, name)
	}
	if len(copies) > 0 {
		a.warn("%q and %q are tied and stored more than once: counted once", source.name, copies)
	}
	return tied, nil
}

// sameStored reports whether two stored tensors hold the same values, as far
// as a look at a few places tells: weights that differ do so everywhere.
func (a *assignment) sameStored(x, y *filling) (bool, error) {
	if a.g.Family == "t5" && !a.config.bool(true, "tie_word_embeddings") && y.name == "lm_head.weight" {
		return false, nil
	}
	if len(x.pieces) != 1 || len(y.pieces) != 1 {
		return false, nil
	}
	s, t := x.pieces[0].stored, y.pieces[0].stored
	if s.DType != t.DType || s.Bytes() != t.Bytes() {
		return false, nil
	}
	fs, err := a.open(s)
	if err != nil {
		return false, err
	}
	defer fs.Close() //nolint:errcheck // opened for reading
	ft, err := a.open(t)
	if err != nil {
		return false, err
	}
	defer ft.Close() //nolint:errcheck // opened for reading
	const looks, page = 16, 4096
	for i := range int64(looks) {
		at := max(0, s.Bytes()-page) / (looks - 1) * i
		n := min(page, s.Bytes()-at)
		p, err := readAt(fs, s.Begin+at, n)
		if err != nil {
			return false, err
		}
		q, err := readAt(ft, t.Begin+at, n)
		if err != nil || !bytes.Equal(p, q) {
			return false, err
		}
	}
	return true, nil
}

func (a *assignment) open(t *safetensors.Tensor) (*os.File, error) {
	f, _, err := safetensors.OpenBeneath(a.ck.Dir, a.ck.Files[t.File].Name)
	return f, err
}

func readAt(f *os.File, at, n int64) ([]byte, error) {
	p := make([]byte, n)
	if _, err := f.ReadAt(p, at); err != nil && err != io.EOF {
		return nil, fmt.Errorf("reading %s: %w", filepath.Base(f.Name()), err)
	}
	return p, nil
}
