package safetensors

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Skipf("symbolic links: %v", err)
	}
}

// wantOpen checks that name opens beneath dir and holds content.
func wantOpen(t *testing.T, dir, name, content string) {
	t.Helper()
	f, info, err := OpenBeneath(dir, name)
	if err != nil {
		t.Errorf("opening %q: %v", name, err)
		return
	}
	defer f.Close()
	if b, err := io.ReadAll(f); string(b) != content || info.Size() != int64(len(content)) {
		t.Errorf("%q holds %q (%d bytes), %v; want %q", name, b, info.Size(), err, content)
	}
}

func wantRefused(t *testing.T, dir, name, msg string) {
	t.Helper()
	f, _, err := OpenBeneath(dir, name)
	if err == nil {
		f.Close() //nolint:errcheck // opened for reading
	}
	var refused *refusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), msg) {
		t.Errorf("opening %q: error is %v, want a *refusedError with %q", name, err, msg)
	}
}

func TestOpenBeneathNames(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "model")
	write(t, filepath.Join(root, "secret"), "secret")
	write(t, filepath.Join(dir, "config.json"), "{}")
	write(t, filepath.Join(dir, "sub", "config.json"), "[]")
	wantOpen(t, dir, "config.json", "{}")
	wantOpen(t, dir, "sub/config.json", "[]")
	for name, msg := range map[string]string{
		filepath.Join(dir, "config.json"): "absolute path",
		"../secret":                       "not a plain relative path",
		"a/../../b":                       "not a plain relative path",
		"sub/../config.json":              "not a plain relative path",
		"./config.json":                   "not a plain relative path",
		"sub//config.json":                "not a plain relative path",
		"config.json/":                    "not a plain relative path",
		"":                                "not a plain relative path",
		".":                               "not a plain relative path",
		"..":                              "not a plain relative path",
		`sub\config.json`:                 "backslash",
		"config.json\x00":                 "control character",
		"a\nb":                            "control character",
		"\xff":                            "not a plain relative path",
		"sub":                             "a directory",
	} {
		wantRefused(t, dir, name, msg)
	}
	if _, _, err := OpenBeneath(dir, "absent"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an absent file gives %v", err)
	}
	if _, _, err := OpenBeneath(filepath.Join(root, "absent"), "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an absent folder gives %v", err)
	}
	if _, _, err := OpenBeneath(filepath.Join(root, "secret"), "x"); err == nil {
		t.Error("a file is taken for a folder")
	}
}

func TestOpenBeneathLinks(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "model")
	write(t, filepath.Join(root, "secret"), "secret")
	write(t, filepath.Join(root, "model2", "x"), "secret")
	write(t, filepath.Join(dir, "real"), "data")
	link(t, "real", filepath.Join(dir, "inside"))
	link(t, "inside", filepath.Join(dir, "twice"))
	link(t, filepath.Join(dir, "real"), filepath.Join(dir, "absolute"))
	link(t, "../model/real", filepath.Join(dir, "roundabout"))
	link(t, "../secret", filepath.Join(dir, "out"))
	link(t, "out", filepath.Join(dir, "outtwice"))
	link(t, filepath.Join(root, "secret"), filepath.Join(dir, "absout"))
	link(t, "../model2", filepath.Join(dir, "dirout")) // shares a prefix with dir
	link(t, "loop", filepath.Join(dir, "loop"))
	link(t, "absent", filepath.Join(dir, "dangling"))
	link(t, "model", filepath.Join(root, "alias"))
	for _, name := range []string{"inside", "twice", "absolute", "roundabout"} {
		wantOpen(t, dir, name, "data")
		wantOpen(t, filepath.Join(root, "alias"), name, "data")
	}
	for _, name := range []string{"out", "outtwice", "absout", "dirout/x"} {
		wantRefused(t, dir, name, "link to ")
	}
	for _, name := range []string{"loop", "dangling"} {
		if _, _, err := OpenBeneath(dir, name); err == nil || !strings.HasPrefix(err.Error(), name+": opening in ") {
			t.Errorf("%s gives %v", name, err)
		}
	}
	if err := os.Link(filepath.Join(root, "secret"), filepath.Join(dir, "hard")); err != nil {
		t.Skipf("hard links: %v", err)
	}
	wantOpen(t, dir, "hard", "secret")
}

func TestOpenBeneathCaches(t *testing.T) {
	root := t.TempDir()
	hub := filepath.Join(root, "hub")
	repo := filepath.Join(hub, "models--ORG--NAME")
	snap := filepath.Join(repo, "snapshots", "abc123")
	write(t, filepath.Join(repo, "blobs", "sha1"), "blob")
	write(t, filepath.Join(repo, "refs", "main"), "abc123")
	write(t, filepath.Join(hub, "models--ORG--OTHER", "blobs", "sha2"), "other")
	write(t, filepath.Join(root, "secret"), "secret")
	link(t, "../../blobs/sha1", filepath.Join(snap, "config.json"))
	link(t, "../../../blobs/sha1", filepath.Join(snap, "text_encoder", "config.json"))
	link(t, "../../refs/main", filepath.Join(snap, "ref"))
	link(t, "../../../models--ORG--OTHER/blobs/sha2", filepath.Join(snap, "other"))
	link(t, filepath.Join(root, "secret"), filepath.Join(repo, "blobs", "sha3"))
	link(t, "../../blobs/sha3", filepath.Join(snap, "viablob"))

	wantOpen(t, snap, "config.json", "blob")
	wantOpen(t, snap, "text_encoder/config.json", "blob")
	wantOpen(t, filepath.Join(snap, "text_encoder"), "config.json", "blob")
	for _, name := range []string{"ref", "other", "viablob"} {
		wantRefused(t, snap, name, "outside any download cache")
	}

	// ModelScope: plain files, the folder itself behind a link.
	ms := filepath.Join(root, "modelscope", "models", "Qwen")
	write(t, filepath.Join(ms, "Qwen2___5", "config.json"), "plain")
	link(t, "Qwen2___5", filepath.Join(ms, "Qwen2.5"))
	wantOpen(t, filepath.Join(ms, "Qwen2.5"), "config.json", "plain")

	// A blobs folder that is a link widens nothing.
	fake := filepath.Join(root, "fake")
	link(t, root, filepath.Join(fake, "blobs"))
	link(t, "../blobs/secret", filepath.Join(fake, "model", "x"))
	wantRefused(t, filepath.Join(fake, "model"), "x", "link to ")
}
