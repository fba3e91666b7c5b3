package page

import (
	"fmt"
	"regexp"
	"strconv"
)

// numbered is a name with one number that differs from block to block, as "model.layers.3".
var numbered = regexp.MustCompile(`^(.*?\.)(\d+)((?:\.[^0-9][^.]*)*)$`)

// modules lists what modules have throughout. Blocks that follow one another are joined, and the modules
// beyond so many too.
func (page *Page) modules(all []holding, most int) []module {
	type run struct {
		first, last, prefix, suffix string
		number                      int64
		bytes                       int64
		units                       int
	}
	var runs []run
	for _, one := range all {
		size := one.bytes.total()
		if size <= 0 {
			continue
		}
		next := run{first: one.owner, last: one.owner, bytes: size, units: 1, number: -1}
		if parts := numbered.FindStringSubmatch(one.owner); parts != nil {
			next.prefix, next.suffix = parts[1], parts[3]
			if number, err := strconv.ParseInt(parts[2], 10, 64); err == nil {
				next.number = number
			}
		}
		if len(runs) > 0 {
			last := &runs[len(runs)-1]
			follows := next.number >= 0 && last.number == next.number-1 && last.prefix == next.prefix && last.suffix == next.suffix
			if follows || len(runs) >= most {
				last.last, last.number = next.last, next.number
				last.bytes += size
				last.units++
				continue
			}
		}
		runs = append(runs, next)
	}
	out := make([]module, len(runs))
	for i, of := range runs {
		name := of.first
		if of.units > 1 {
			name = fmt.Sprintf("%s – %s", of.first, of.last)
		}
		out[i] = module{page.name(name), of.bytes, of.units}
	}
	return out
}
