package hf

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
)

// listedFolderCase is a small model that Transformers 5.17 saved, and its device map's modules
// (fixtures/oracle/classes.py: folder_of).
type listedFolderCase struct {
	Config  map[string]any `json:"config"`
	Saved   []string       `json:"saved"`
	State   []string       `json:"state"`
	Buffers []string       `json:"buffers"` // next to the state dict
	Tied    [][]string     `json:"tied"`
	NoSplit []string       `json:"no_split"`
}

func (c *listedFolderCase) class() string {
	name, _ := c.Config["architectures"].([]any)[0].(string)
	return name
}

// TestListed reads folders by the table of classes, with or without a reader of the family. Each
// has a key for every tensor of the state dict (accelerate's check_device_map), tied tensors on one
// device, and whole no-split modules.
func TestListed(t *testing.T) {
	cases := listedCases(t)
	if len(cases) < 30 {
		t.Fatalf("%d folders", len(cases))
	}
	for _, c := range cases {
		t.Run(c.class(), func(t *testing.T) {
			g, err := readListed(t, c.folder(t, c.Saved))
			if why := refusedListed[c.class()]; why != "" {
				if err == nil || !strings.Contains(err.Error(), why) {
					t.Errorf("%v, want %q", err, why)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			c.check(t, g)
		})
	}
}

// readListed reads a folder as one of a family without a reader.
func readListed(t *testing.T, dir string) (*modelgraph.Graph, error) {
	t.Helper()
	data := fixtures.Must(readConfig(dir))(t)
	cfg := fixtures.Must(parseConfig(ConfigName, data))(t)
	return listedFolder(dir, cfg, "not read")
}

// refusedListed are classes whose folders are not read, with the reason.
var refusedListed = map[string]string{
	"Zamba2ForCausalLM": "to another, and the files do not tell how many there are",
}

func listedCases(t *testing.T) []*listedFolderCase {
	t.Helper()
	return fixtures.Must(fixtures.Rows[*listedFolderCase]("../../fixtures/oracle/folders.jsonl.gz"))(t)
}

// folder writes the config and a file with tensors of two elements.
func (c *listedFolderCase) folder(t *testing.T, names []string) string {
	t.Helper()
	dir := t.TempDir()
	config := fixtures.Must(json.Marshal(c.Config))(t)
	write(t, filepath.Join(dir, ConfigName), config)
	var tensors []stored
	for _, n := range names {
		tensors = append(tensors, st(n, modelgraph.BF16, 2))
	}
	writeFile(t, filepath.Join(dir, "model.safetensors"), tensors)
	return dir
}

// check checks the graph's units against Transformers' modules.
func (c *listedFolderCase) check(t *testing.T, g *modelgraph.Graph) {
	t.Helper()
	set := make(map[int]int) // units that share a device
	for _, units := range g.TiedUnits() {
		for _, u := range units {
			set[u] = units[0] + 1
		}
	}
	keys := make(map[string]int)
	for u := range g.Units {
		for _, k := range g.Units[u].Keys {
			keys[k] = u
		}
	}
	device := func(name string) int {
		for n := name; n != ""; n = paths.Parent(n) {
			if u, ok := keys[n]; ok {
				if s := set[u]; s > 0 {
					return s - 1
				}
				return u
			}
		}
		t.Errorf("no key stands for %q", name)
		return -1
	}
	for _, n := range slices.Concat(c.State, c.Buffers) {
		device(n)
	}
	for _, names := range c.Tied {
		for _, n := range names[1:] {
			if device(n) != device(names[0]) {
				t.Errorf("%q and %q are one tensor, on two devices", names[0], n)
			}
		}
	}
	for _, module := range c.NoSplit {
		at := -1
		for _, n := range c.State {
			if !strings.HasPrefix(n, module+".") {
				continue
			}
			d := device(n)
			if at >= 0 && d != at {
				t.Errorf("%q is split at %q", module, n)
				break
			}
			at = d
		}
	}
	var elements int64
	for range c.Saved {
		elements += 2
	}
	if n := g.ParamCount() + bufferCount(g); n != elements {
		t.Errorf("%d elements of the %d that are stored", n, elements)
	}
}

// TestListedRefuses: names that are unknown or missing are refused with the name.
func TestListedRefuses(t *testing.T) {
	for _, c := range listedCases(t) {
		var names []string
		var want string
		switch c.class() {
		case "BartForConditionalGeneration": // a whole module is missing
			names, want = slices.DeleteFunc(slices.Clone(c.Saved), func(n string) bool { return strings.Contains(n, "layernorm_embedding") }), "layernorm_embedding"
		case "GPTNeoXForCausalLM": // names, one of them unknown, of a class that renames some
			names, want = append(slices.Clone(c.Saved), "gpt_neox.more.weight"), `"gpt_neox.more.weight" is not a name that GPTNeoXForCausalLM`
		case "CohereForCausalLM": // the embedding and its tied tensors are absent
			names, want = slices.DeleteFunc(slices.Clone(c.Saved), func(n string) bool { return strings.Contains(n, "embed") }), `"model.embed_tokens.weight"`
		case "LlavaForConditionalGeneration": // of the language model alone
			names, want = slices.DeleteFunc(slices.Clone(c.Saved), func(n string) bool { return !strings.HasPrefix(n, "language_model") }), "no file holds"
		case "DebertaV2ForMaskedLM": // a head that another configuration has elsewhere
			names, want = slices.DeleteFunc(slices.Clone(c.Saved), func(n string) bool { return strings.HasPrefix(n, "cls.") }), `no file holds "cls.predictions`
		case "BlipForConditionalGeneration", "Blip2ForConditionalGeneration": // no block of the tower
			names, want = slices.DeleteFunc(slices.Clone(c.Saved), func(n string) bool { return strings.HasPrefix(n, "vision_model.encoder.layers") }), `no file holds "vision_model.encoder.layers.*`
		default:
			continue
		}
		_, err := readListed(t, c.folder(t, names))
		if _, ok := errors.AsType[*unprovenError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", c.class(), err, want)
		}
	}
}

// TestListedTies: a head is tied by the config, else by the class's default (Cohere's is tied). A
// head stored in a type other than the embedding's is separate. A head that is neither tied nor
// stored is refused.
func TestListedTies(t *testing.T) {
	for _, c := range listedCases(t) {
		if c.class() != "CohereForCausalLM" {
			continue
		}
		for _, said := range []struct {
			tied any
			ties int
			head modelgraph.DType
		}{{nil, 1, modelgraph.BF16}, {true, 1, modelgraph.BF16}, {false, 0, modelgraph.BF16}, {true, 0, modelgraph.F32}} {
			if c.Config["tie_word_embeddings"] = said.tied; said.tied == nil {
				delete(c.Config, "tie_word_embeddings")
			}
			dir := c.folder(t, nil)
			tensors := []stored{st("lm_head.weight", said.head, 2)}
			for _, n := range c.Saved {
				tensors = append(tensors, st(n, modelgraph.BF16, 2))
			}
			writeFile(t, filepath.Join(dir, "model.safetensors"), tensors)
			g, err := readListed(t, dir)
			if err != nil || len(g.Ties) != said.ties {
				t.Errorf("tie_word_embeddings %v: %v, ties %v", said.tied, err, g.Ties)
			}
		}
		c.Config["tie_word_embeddings"] = false
		if _, err := readListed(t, c.folder(t, c.Saved)); err == nil || !strings.Contains(err.Error(), `no file holds "lm_head.weight"`) {
			t.Errorf("untied, and not stored: %v", err)
		}
		return
	}
	t.Fatal("no folder of Cohere")
}

// TestJoined: names of one tensor that two configurations tie are one group.
func TestJoined(t *testing.T) {
	got := joined([][]string{{"a", "b"}, {"c", "d"}, {"e", "f"}, {"b", "c", "g"}, {"e", "f"}})
	if want := [][]string{{"a", "b", "c", "g", "d"}, {"e", "f"}}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestPatterns: a literal part precedes a star, which matches numbers; names are in module order.
func TestPatterns(t *testing.T) {
	p := paths.NewPatterns([]string{"embed.weight", "layers.*.0.weight", "layers.*.norm.weight", "head.2.weight"})
	for name, want := range map[string]string{
		"embed.weight": "embed.weight", "layers.7.0.weight": "layers.*.0.weight", "layers.7.1.weight": "", "layers.x.0.weight": "",
		"head.2.weight": "head.2.weight", "head.3.weight": "", "layers.7": "", "layers.7.0.weight.more": "", "": "",
	} {
		if got := p.Match(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
	names := []string{"zebra", "head.2.weight", "layers.10.0.weight", "layers.9.norm.weight", "layers.9.0.weight", "embed.weight", "layers.9.0.more"}
	slices.SortFunc(names, p.Compare)
	want := "embed.weight layers.9.0.weight layers.9.0.more layers.9.norm.weight layers.10.0.weight head.2.weight zebra"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := paths.Filled("a.*.b.*.c", []string{"3", "4", "5"}); got != "a.3.b.4.c" || paths.Starred("a.3.b.44.c") != "a.*.b.*.c" {
		t.Errorf("%s, %s", got, paths.Starred("a.3.b.44.c"))
	}
}
