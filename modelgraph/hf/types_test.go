package hf

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// typeSample is a config and what Transformers builds from it
// (fixtures/oracle/tables.py).
type typeSample struct {
	Config  jsontext.Value `json:"config"`
	Params  int64          `json:"params"`
	Tensors string         `json:"tensors"`
	Buffers string         `json:"buffers"`
	Ties    string         `json:"ties"`
	NoSplit string         `json:"nosplit"`
}

// typeFacts are the same of a graph, as lines.
func typeFacts(tree *typeTree) map[string][]string {
	facts := make(map[string][]string)
	shape := func(s []int64) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(s), " ", ","), "[]") }
	for _, t := range tree.tensors {
		switch owner := tree.ties[t.name]; {
		case t.buffer:
			kept := 0
			if t.persistent {
				kept = 1
			}
			facts["buffers"] = append(facts["buffers"], fmt.Sprintf("%s %s %d", t.name, shape(t.shape), kept))
		case owner != "":
			facts["ties"] = append(facts["ties"], t.name+" = "+owner)
		default:
			facts["tensors"] = append(facts["tensors"], t.name+" "+shape(t.shape))
		}
	}
	facts["nosplit"] = slices.Sorted(maps.Keys(tree.units))
	return facts
}

func linesDigest(lines []string) string {
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:])[:16]
}

// readTypes reads the tensors of a config by the table of a release.
func readTypes(in *release, data []byte) (*typeTree, error) {
	cfg, err := parseConfig("config.json", data)
	if err != nil {
		return nil, err
	}
	tree, _, err := in.treeOf(cfg)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(tree.units, func(_, class string) bool { return class != "" && !slices.Contains(tree.noSplit, class) })
	slices.SortStableFunc(tree.tensors, func(x, y typeTensor) int { return slices.Compare(x.key, y.key) })
	return tree, nil
}

// TestTypes compares the table with what Transformers builds. DEVMAP_TYPES
// names other samples, one a line, and DEVMAP_TYPES_OF their release.
func TestTypes(t *testing.T) {
	path := os.Getenv("DEVMAP_TYPES")
	if path == "" {
		path = "../../fixtures/oracle/types.jsonl.gz"
	}
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	in := newest
	for _, r := range releases {
		if strings.HasPrefix(os.Getenv("DEVMAP_TYPES_OF"), r.name) {
			in = r
		}
	}
	exact, refused, wrong := 0, 0, 0
	for text := range bytes.Lines(data) {
		var sample typeSample
		if err := json.Unmarshal(text, &sample); err != nil {
			t.Fatal(err)
		}
		tree, err := readTypes(in, sample.Config)
		switch {
		case errors.As(err, new(*typeError)):
			refused++
			if os.Getenv("DEVMAP_TYPES") != "" {
				t.Logf("refused %.150s: %v", sample.Config, err)
			}
			continue
		case err != nil:
			t.Errorf("%.150s: %v", sample.Config, err)
			continue
		}
		facts := typeFacts(tree)
		same := true
		for name, want := range map[string]string{"tensors": sample.Tensors, "buffers": sample.Buffers, "ties": sample.Ties, "nosplit": sample.NoSplit} {
			got := facts[name]
			if name == "nosplit" || name == "ties" {
				slices.Sort(got)
			}
			if linesDigest(got) != want {
				same = false
				t.Errorf("wrong %s: %.200s: %d lines, first %v", name, sample.Config, len(got), got[:min(3, len(got))])
			}
		}
		if same {
			exact++
		} else {
			wrong++
		}
	}
	t.Logf("%d exact, %d refused, %d wrong", exact, refused, wrong)
	if os.Getenv("DEVMAP_TYPES") == "" && (exact < 9*refused || exact < 1000) {
		t.Errorf("%d exact, %d refused: the table has lost some", exact, refused)
	}
}
