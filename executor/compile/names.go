package compile

import (
	"strconv"
	"strings"
)

// names are those of units as programs write them: letters, digits and ._[]
// stay, what else there is becomes an underscore, and two are never equal.
type names map[string]bool

func newNames() names { return make(names) }

func (taken names) take(name string) string {
	plain := strings.Map(func(char rune) rune {
		if 'a' <= char && char <= 'z' || 'A' <= char && char <= 'Z' || '0' <= char && char <= '9' || strings.ContainsRune("._[]", char) {
			return char
		}
		return '_'
	}, name)
	out := plain
	for number := 2; taken[out] || out == ""; number++ {
		out = plain + "_" + strconv.Itoa(number)
	}
	taken[out] = true
	return out
}
