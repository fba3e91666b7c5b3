package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestListWords(t *testing.T) {
	name := filepath.Join(t.TempDir(), "heed_test.go")
	text := `package small

// Grow keeps what was reported, and nobody
// "told" it; at the worst
// moment it is large, as thinness is.
func Grow(toldOf, retold int) (kept2 int) {
	HTTPRig := 1 //nolint:gosec // told
	_ = HTTPRig
	return toldOf
}

// Output: told
`
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	found, err := listWords([]string{name}, &out)
	if err != nil || !found {
		t.Fatalf("found %v, error %v", found, err)
	}
	want := []string{
		`:1: file "heed_test": apply, adopt, syncBest`,
		`:3: comment "nobody": no one`,
		`:4: comment "worst moment": peak memory`,
		`:6: identifier "toldOf": reported, message, onProgress`,
		`:6: identifier "kept2": retained, cached, saved`,
		`:7: identifier "HTTPRig": harness`,
	}
	if lines := strings.Split(strings.ReplaceAll(strings.TrimSpace(out.String()), name, ""), "\n"); !slices.Equal(lines, want) {
		t.Errorf("hits\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestReadVocabulary(t *testing.T) {
	for _, text := range []string{"told\treported\n", "[both]\ntold reported\n", "[comments]\nto(ld\treported\n"} {
		if _, err := readVocabulary(text); err == nil || !strings.Contains(err.Error(), "words.txt:") {
			t.Errorf("error of %q: %v", text, err)
		}
	}
}

func TestParts(t *testing.T) {
	for name, want := range map[string][]string{
		"toldOfKept":   {"told", "of", "kept"},
		"Told":         {"told"},
		"maxHTTPTold":  {"max", "http", "told"},
		"run_told":     {"run", "told"},
		"x":            {"x"},
		"GradsStay":    {"grads", "stay"},
		"someV2Thin":   {"some", "v2", "thin"},
		"":             nil,
		"_":            nil,
		"readFP16Dear": {"read", "fp16", "dear"},
	} {
		if got := parts(name); !slices.Equal(got, want) {
			t.Errorf("parts of %q: %q, want %q", name, got, want)
		}
	}
}
