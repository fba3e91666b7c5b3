package program

import (
	"strconv"
	"strings"
)

// UnitNames are names as programs write them, of the buffers and the routine of
// a unit: letters, digits and ._[] stay, what else there is becomes an
// underscore, and no two are equal.
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
