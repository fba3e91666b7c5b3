package hf

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

// cached writes the tiny llama as a Hugging Face cache: blobs, and a snapshot of links to them.
func cached(t *testing.T, root string) (snapshot string) {
	t.Helper()
	plain := llamaFolder(t, tinyLlama, func(ts []stored) []stored { return ts })
	repo := filepath.Join(root, "models--org--tiny-1.0")
	snapshot = filepath.Join(repo, "snapshots", "0123abcd")
	for blob, name := range map[string]string{"b1": ConfigName, "b2": "model.safetensors"} {
		move(t, filepath.Join(plain, name), filepath.Join(repo, "blobs", blob))
		link(t, filepath.Join("..", "..", "blobs", blob), filepath.Join(snapshot, name))
	}
	return snapshot
}

func TestCacheLinks(t *testing.T) {
	g, err := FromCheckpoint(cached(t, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if g.Name != "tiny-1.0" || g.ParamCount() != 1704 || len(g.Warnings) > 0 {
		t.Errorf("%s, %d parameters, %v", g.Name, g.ParamCount(), g.Warnings)
	}
	part := g.Layers[0].Params[0].Parts[0]
	f, _, err := safetensors.OpenBeneath(filepath.Dir(part.File), filepath.Base(part.File))
	if err != nil {
		t.Fatalf("a part does not open: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestHostileLinks: config and weights outside the folder are refused.
func TestHostileLinks(t *testing.T) {
	for _, name := range []string{ConfigName, "model.safetensors"} {
		t.Run(name, func(t *testing.T) {
			dir := llamaFolder(t, tinyLlama, func(ts []stored) []stored { return ts })
			away := filepath.Join(t.TempDir(), "away")
			move(t, filepath.Join(dir, name), away)
			link(t, away, filepath.Join(dir, name))
			_, err := FromCheckpoint(dir)
			if err == nil || !strings.Contains(err.Error(), "link to ") {
				t.Errorf("%v is no refusal", err)
			}
		})
	}
}

func TestMissingShard(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, ConfigName), []byte(tinyLlama))
	write(t, filepath.Join(dir, "model.safetensors.index.json"), []byte(`{"weight_map":{"lm_head.weight":"gone.safetensors"}}`))
	if _, err := FromCheckpoint(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v does not say that the shard is missing", err)
	}
}
