package source

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
)

// TestLaunches: every function that the table names is in a module for some
// types, and takes as many bytes of arguments as the table's line has; and every
// function of the modules has a line.
func TestLaunches(t *testing.T) {
	t.Parallel()
	launches := fixtures.Must(Launches())(t)
	takes := parameters(t)
	named := make(map[string]bool)
	for kernel, lines := range launches {
		for _, line := range lines {
			found := 0
			for function, bytes := range takes {
				if !variant(function, line) {
					continue
				}
				found, named[function] = found+1, true
				if want := sizeOf(line.Arguments); bytes != want {
					t.Errorf("%s: %s takes %d bytes of arguments, its line has %d", kernel, function, bytes, want)
				}
			}
			if found == 0 {
				t.Errorf("%s: no module has %s of %v", kernel, line.Function, line.Types)
			}
		}
	}
	for function := range takes {
		if !named[function] && function != "fused" { // its launches are made of several lines
			t.Errorf("no line launches %s", function)
		}
	}
}

// variant reports a function that is the line's for some types.
func variant(function string, line Launch) bool {
	rest, found := strings.CutPrefix(function, line.Function)
	return found && regexp.MustCompile(`^(_bf16|_f32){`+strconv.Itoa(len(line.Types))+`}$`).MatchString(rest)
}

// sizeOf is the bytes of arguments, as the head of launches.txt has them.
func sizeOf(arguments []string) int {
	bytes := 0
	for _, argument := range arguments {
		_, err := strconv.Atoi(argument)
		switch {
		case argument == "!past":
			bytes += 16
		case argument == "!turn":
			bytes += 528
		case argument == "!areas":
			bytes += 1296
		case argument == "!settings":
			bytes += 72
		case argument[0] == '*':
			bytes += 136
		case err == nil, strings.ContainsAny(argument, "!&#~@:"):
			bytes += 8
		default:
			bytes += 16
		}
	}
	return bytes
}

// parameters are the bytes of arguments that each function of the modules takes.
func parameters(t *testing.T) map[string]int {
	t.Helper()
	modules := fixtures.Must(Modules())(t)
	entry := regexp.MustCompile(`\.entry (\w+)\(([^)]*)\)`)
	param := regexp.MustCompile(`\.param (?:\.align 8 \.b8 \w+\[(\d+)\]|\.[usf]64 \w+)`)
	takes := make(map[string]int)
	for name, text := range modules {
		want := "\n.version 7.8\n.target sm_80\n"
		if strings.HasSuffix(name, "_90") {
			want = "\n.version 8.0\n.target sm_90\n"
		}
		if !strings.Contains(text, want) {
			t.Errorf("%s is not%s", name, strings.ReplaceAll(want, "\n", " "))
		}
		for _, function := range entry.FindAllStringSubmatch(text, -1) {
			takes[function[1]] = 0
			for _, one := range param.FindAllStringSubmatch(function[2], -1) {
				bytes := 8
				if one[1] != "" {
					bytes, _ = strconv.Atoi(one[1])
				}
				takes[function[1]] += bytes
			}
		}
	}
	return takes
}

// TestStated: the package's comment says how many modules there are and how large
// they are together.
func TestStated(t *testing.T) {
	entries := fixtures.Must(ptx.ReadDir("."))(t)
	var modules int
	var bytes float64
	for _, entry := range entries {
		text := fixtures.Must(ptx.ReadFile(entry.Name()))(t)
		if strings.HasSuffix(entry.Name(), ".ptx") {
			modules++
			bytes += float64(len(text))
		}
	}
	code := fixtures.Must(os.ReadFile("source.go"))(t)
	if want := fmt.Sprintf("%d modules of %.1f MB", modules, bytes/1e6); !strings.Contains(strings.Split(string(code), "\npackage ")[0], want) {
		t.Errorf("the comment of source.go does not say %q", want)
	}
}
