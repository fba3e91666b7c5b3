package program

import (
	"strconv"
	"strings"
)

// UnitNames returns unique names for the buffers and the routines of units. Letters, digits and
// ._[] stay; all other characters become underscores.
func UnitNames(names []string) []string {
	taken := make(map[string]bool, len(names))
	out := make([]string, len(names))
	for index, name := range names {
		plain := strings.Map(func(char rune) rune {
			if 'a' <= char && char <= 'z' || 'A' <= char && char <= 'Z' || '0' <= char && char <= '9' || strings.ContainsRune("._[]", char) {
				return char
			}
			return '_'
		}, name)
		unique := plain
		for number := 2; taken[unique] || unique == ""; number++ {
			unique = plain + "_" + strconv.Itoa(number)
		}
		taken[unique], out[index] = true, unique
	}
	return out
}
