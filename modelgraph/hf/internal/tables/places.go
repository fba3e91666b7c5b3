package tables

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
)

// numbered are the entries of a class. One with a star after a word ("expert_*") stands for an entry
// of each number.
func (class *Class) numbered(of *evaluation) [][]any {
	numbers := func(entry []any) bool {
		pattern, _ := entry[1].(string)
		return strings.Contains(pattern, "_*")
	}
	if !slices.ContainsFunc(class.Entries, numbers) {
		return class.Entries
	}
	const most = 10_000
	var all [][]any
	for _, entry := range class.Entries {
		pattern, _ := entry[1].(string)
		word, rest, several := strings.Cut(pattern, "_*")
		if !several {
			all = append(all, entry)
			continue
		}
		count, _ := number(of.eval(class.Rounds[word+"_*"], nil))
		if count > most {
			of.fail("there are too many")
		}
		for k := range int(min(count, most)) {
			one := slices.Clone(entry)
			one[1] = fmt.Sprint(word, "_", k, rest)
			all = append(all, one)
		}
	}
	return all
}

// ordered gives each part of a name its place in the class. All numbers of a list have one place,
// so that they are in the list's order.
func ordered(places map[string]int, pattern string) (at []int) {
	for path := range prefixes(paths.Starred(pattern)) {
		if _, ok := places[path]; !ok {
			places[path] = len(places)
		}
		at = append(at, places[path])
	}
	return at
}

// place fills in the stars of a name. The key has the place of each part and the numbers.
func place(pattern string, stars, at []int) (name string, key []int) {
	parts := strings.Split(unmarked(pattern), ".")
	key = make([]int, 0, 2*len(parts))
	for i, part := range parts {
		key = append(key, at[i])
		switch {
		case part == "*":
			key, parts[i], stars = append(key, stars[0]), strconv.Itoa(stars[0]), stars[1:]
		case part != "" && part[0] <= '9': // Atoi makes an error of each word
			if number, err := strconv.Atoi(part); err == nil {
				key = append(key, number)
			}
		}
	}
	return strings.Join(parts, "."), key
}

// unmarked is a pattern without marks. A mark after @ gives the same part of other layers another
// place ("mlp@cross").
func unmarked(pattern string) string {
	if !strings.Contains(pattern, "@") {
		return pattern
	}
	parts := strings.Split(pattern, ".")
	for i := range parts {
		parts[i], _, _ = strings.Cut(parts[i], "@")
	}
	return strings.Join(parts, ".")
}

// prefixes are the parts of a name: "a", "a.b", "a.b.c".
func prefixes(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range len(name) + 1 {
			if (i == len(name) || name[i] == '.') && !yield(name[:i]) {
				return
			}
		}
	}
}
