package safetensors

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// sortFiles puts the shards in the order of their names.
func (x *index) sortFiles() {
	old := slices.Clone(x.files)
	slices.Sort(x.files)
	at := make([]int, len(old))
	for i, name := range old {
		at[i], _ = slices.BinarySearch(x.files, name)
	}
	for tensor, i := range x.shard {
		x.shard[tensor] = at[i]
	}
}

// merge puts the tensors of all shards in one list and compares it with the
// index.
func (c *Checkpoint) merge(idx *index, headers []*Header) error {
	var errs []error
	var unlisted []string
	holder := map[string]int{} // file that holds each name, listed or not
	total := int64(0)
	for i, h := range headers {
		for _, t := range h.Tensors {
			if first, ok := holder[t.Name]; ok {
				errs = append(errs, &syntaxError{
					c.Files[i].Name, "tensor " + quote(t.Name),
					"also in " + printable(c.Files[first].Name),
				})
				continue
			}
			holder[t.Name] = i
			if _, ok := idx.shard[t.Name]; !ok && idx.shard != nil {
				unlisted = append(unlisted, t.Name)
				continue
			}
			t.File = i
			total += t.Bytes()
			c.Tensors = append(c.Tensors, t)
		}
	}
	errs = append(errs, c.absent(idx, holder)...)
	if len(errs) > 0 {
		return joinErrors(errs)
	}
	if len(unlisted) > 0 {
		c.warn("%s: %d tensors of the shards are not listed and are ignored: %s", printable(idx.name), len(unlisted), quoteSome(unlisted))
	}
	if w := idx.totalSizeLie(total); w != "" {
		c.warn("%s", w)
	}
	return nil
}

// absent reports the tensors that are not where the index says, by name.
func (c *Checkpoint) absent(idx *index, holder map[string]int) []error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(idx.shard)) {
		want := idx.shard[name]
		got, ok := holder[name]
		if ok && got == want {
			continue
		}
		msg := "not in " + printable(c.Files[want].Name)
		if ok {
			msg += ", but in " + printable(c.Files[got].Name)
		}
		errs = append(errs, &syntaxError{idx.name, "weight_map " + quote(name), msg})
	}
	return errs
}

// warnUnread names the weights in the folder that belong to no index.
func (c *Checkpoint) warnUnread(start string, names []string) {
	unread := filter(names, func(name string) bool {
		_, read := slices.BinarySearchFunc(c.Files, name, func(f File, name string) int {
			return strings.Compare(f.Name, name)
		})
		return isShard(name) && notConsolidated(name) && !read
	})
	if len(unread) > 0 {
		c.warn("%s: %d other .safetensors files of the folder are ignored: %s", printable(start), len(unread), quoteSome(unread))
	}
}

func (c *Checkpoint) warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}
