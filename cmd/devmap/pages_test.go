package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/worker"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// TestCommandPages compares docs/cli with the commands. Each command and help topic has a page with
// the text of `devmap help`, and there is an index. Removed commands have no page. UPDATE_GOLDEN=1
// writes the pages.
func TestCommandPages(t *testing.T) {
	dir := repository(t)
	index := "# Commands\n\nEach page shows the help of one command. `devmap help COMMAND` prints the same.\n\n| Command | Task |\n|---|---|\n"
	want := []string{"index.md"}
	for _, command := range listedCommands(newRoot(worker.Self{})) {
		name := command.Name()
		help, err := shell(dir, "devmap help "+name)
		if err != nil {
			t.Fatalf("devmap help %s: %v\n%s", name, err, help)
		}
		generated(t, "docs/cli/"+name+".md", fmt.Sprintf("# devmap %s\n\n%s.\n\n```console\n$ devmap help %s\n%s```\n\n[All commands](index.md)\n", name, command.Short, name, help))
		index += fmt.Sprintf("| [%s](%s.md) | %s |\n", name, name, command.Short)
		want = append(want, name+".md")
	}
	generated(t, "docs/cli/index.md", index+"\n[All pages](../index.md)\n")
	found := fixtures.Must(filepath.Glob(filepath.Join("..", "..", "docs", "cli", "*")))(t)
	for _, path := range found {
		if !slices.Contains(want, filepath.Base(path)) {
			t.Errorf("%s is the page of no command", path)
		}
	}
}

// listedCommands returns the commands that have a page: all but help and hidden ones.
func listedCommands(root *cobra.Command) (commands []*cobra.Command) {
	for _, command := range root.Commands() {
		if command.Name() != "help" && (command.IsAvailableCommand() || command.IsAdditionalHelpTopicCommand()) {
			commands = append(commands, command)
		}
	}
	return commands
}

// TestModelsAndGPUs compares the tables of docs/models-and-gpus.md with the
// catalogue and the built-in configs. UPDATE_GOLDEN=1 writes them.
func TestModelsAndGPUs(t *testing.T) {
	gpus := "| Name | Memory GiB | bf16 TFLOP/s | Bandwidth TB/s | Capability |\n|---|---|---|---|---|\n"
	for _, name := range catalogue.Names() {
		gpu := fixtures.Must(catalogue.Find(name))(t)
		gpus += fmt.Sprintf("| %#q | %.2f | %s | %s | %s |\n", name, float64(gpu.CapacityBytes-gpu.ReservedBytes)/(1<<30), published("%.4g", gpu.BF16FLOPS), published("%.3g", gpu.BytesPerSecond), cmp.Or(gpu.ComputeCapability, "–"))
	}
	named := map[string][]string{}
	for _, name := range load.Names(fixtures.Models()) {
		const pipelines = "diffusion pipelines"
		config, err := fs.ReadFile(fixtures.Models(), name+"/config.json")
		if errors.Is(err, fs.ErrNotExist) {
			named[pipelines] = append(named[pipelines], "`"+name+"`")
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		kind := modelType.FindSubmatch(config)
		if kind == nil {
			t.Fatalf("%s has no model_type", name)
		}
		named[string(kind[1])] = append(named[string(kind[1])], "`"+name+"`")
	}
	models := "| Type | Names |\n|---|---|\n"
	for _, kind := range slices.Sorted(maps.Keys(named)) {
		models += "| " + kind + " | " + strings.Join(named[kind], ", ") + " |\n"
	}
	page := read(t, filepath.Join("..", "..", "docs", "models-and-gpus.md"))
	for name, text := range map[string]string{"gpus": gpus, "models": models} {
		section := regexp.MustCompile(`(?s)(<!-- ` + name + ` -->\n)(.*?)(<!-- end -->)`)
		if !section.MatchString(page) {
			t.Fatalf("docs/models-and-gpus.md has no section %s", name)
		}
		page = section.ReplaceAllString(page, "${1}\n"+text+"\n${3}")
	}
	generated(t, "docs/models-and-gpus.md", page)
}

// TestCounts compares sentences of two pages: types of the page's table, types with bands, classes with
// operations, and releases with a table. UPDATE_GOLDEN=1 writes them.
func TestCounts(t *testing.T) {
	listed := 0
	page := read(t, filepath.Join("..", "..", "docs", "models-and-gpus.md"))
	_, table, _ := strings.Cut(page, "| Group | Types |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.SplitSeq(table, "\n") {
		listed += 1 + strings.Count(strings.Split(row, "|")[2], ",")
	}
	var bands map[string]any
	if err := json.Unmarshal([]byte(read(t, filepath.Join("..", "..", "costmodel", "estimate", "bands.json"))), &bands); err != nil {
		t.Fatal(err)
	}
	operations := fixtures.Must(fixtures.Rows[struct{}](filepath.Join("..", "..", "modelgraph", "hf", "internal", "tables", "types-operations.jsonl.gz")))(t)
	said, err := shell(repository(t), "devmap inspect llama-3.2-1b --transformers 1.0")
	releases := regexp.MustCompile(`of (5\.\d+ to 5\.\d+)`).FindStringSubmatch(said)
	if err == nil || releases == nil {
		t.Fatalf("%v: %s", err, said)
	}
	for _, name := range []string{"models-and-gpus.md", "limits.md"} {
		page := read(t, filepath.Join("..", "..", "docs", name))
		for sentence, figure := range map[string]string{
			`devmap predicts peaks of (\d+) model types`:                       fmt.Sprint(listed),
			`- (\d+) model types were compared`:                                fmt.Sprint(len(bands)),
			`what layers compute\S* in (\d+) classes`:                          fmt.Sprint(len(operations)),
			`(?:modules|types|from) (?:of Transformers )?(5\.\d+[^.]*\.\d+)\b`: releases[1],
		} {
			at := regexp.MustCompile(sentence).FindAllStringSubmatchIndex(page, -1)
			for _, found := range slices.Backward(at) {
				page = page[:found[2]] + figure + page[found[3]:]
			}
		}
		generated(t, "docs/"+name, page)
	}
}

var modelType = regexp.MustCompile(`"model_type": *"([^"]+)"`)

// published returns a rate in tera units, or a dash if its maker publishes none.
func published(format string, rate float64) string {
	if rate == 0 {
		return "–"
	}
	return fmt.Sprintf(format, rate/1e12)
}

// TestTerminalPicture compares docs/assets/terminal.svg with the output of a command.
// UPDATE_GOLDEN=1 draws it.
func TestTerminalPicture(t *testing.T) {
	command := "devmap plan qwen2.5-3b --gpus 4 --gpu h200-141gb --mode train --batch 4 -o plan.json"
	run := command
	if newRoot(worker.Self{}).PersistentFlags().Lookup("color") != nil {
		run += " --color always"
	}
	out, err := shell(repository(t), run)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	generated(t, "docs/assets/terminal.svg", picture("$ "+command+"\n"+out))
}

// generated compares a file of the repository with its text.
func generated(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("..", "..", filepath.FromSlash(name))
	if old, err := os.ReadFile(path); err == nil && string(old) == text {
		return
	}
	if os.Getenv("UPDATE_GOLDEN") != "1" {
		t.Errorf("%s is not as generated: UPDATE_GOLDEN=1 writes it", name)
		return
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

var (
	escape  = regexp.MustCompile("\x1b\\[([0-9;]*)m")
	colours = map[int]string{31: "#f47067", 32: "#7ee787", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#76e3ea", 90: "#8b949e"}
)

// picture draws a terminal's text as SVG. Every line is stretched to its number of columns, so
// tables are straight in any font.
func picture(text string) string {
	const width, height, margin = 8.4, 18, 16
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	columns := 0
	var body strings.Builder
	for i, line := range lines {
		count := utf8.RuneCountInString(escape.ReplaceAllString(line, ""))
		columns = max(columns, count)
		if count > 0 {
			fmt.Fprintf(&body, "<text x=\"%d\" y=\"%d\" textLength=\"%.1f\" lengthAdjust=\"spacingAndGlyphs\">%s</text>\n", margin, 52+height*i, width*float64(count), spans(line))
		}
	}
	right, bottom := int(width*float64(columns))+2*margin, 52+height*len(lines)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="devmap plan in a terminal">
<style>text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #e6edf3; white-space: pre }</style>
<rect width="%d" height="%d" rx="8" fill="#0d1117"/>
<circle cx="20" cy="18" r="6" fill="#f47067"/><circle cx="40" cy="18" r="6" fill="#e3b341"/><circle cx="60" cy="18" r="6" fill="#7ee787"/>
%s</svg>
`, right, bottom, right, bottom, body.String())
}

// spans returns a line with its colours.
func spans(line string) string {
	var out strings.Builder
	style := ""
	put := func(text string) {
		switch text = html.EscapeString(text); {
		case text == "":
		case style == "":
			out.WriteString(text)
		default:
			out.WriteString("<tspan " + style + ">" + text + "</tspan>")
		}
	}
	at := 0
	for _, found := range escape.FindAllStringSubmatchIndex(line, -1) {
		put(line[at:found[0]])
		at, style = found[1], styled(line[found[2]:found[3]])
	}
	put(line[at:])
	return out.String()
}

// styled returns the style of an escape sequence; 0 and no code end all styles.
func styled(codes string) string {
	var style []string
	for _, code := range strings.Split(codes, ";") {
		number, err := strconv.Atoi(code)
		switch {
		case err != nil || number == 0:
			style = nil
		case number == 1:
			style = append(style, `font-weight="bold"`)
		case number == 2:
			style = append(style, `opacity="0.7"`)
		case colours[number] != "":
			style = append(style, `fill="`+colours[number]+`"`)
		}
	}
	return strings.Join(style, " ")
}

// TestPicture draws colours, and characters that need escapes in markup.
func TestPicture(t *testing.T) {
	svg := picture("$ a <b>\n\x1b[1;32mok\x1b[0m & done\n")
	for _, want := range []string{`$ a &lt;b&gt;</text>`, `<tspan font-weight="bold" fill="#7ee787">ok</tspan> &amp; done</text>`, `textLength="58.8"`, `textLength="75.6"`} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in\n%s", want, svg)
		}
	}
}
