package safetensors

import (
	"fmt"
	"maps"
	"slices"
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
func (checkpoint *Checkpoint) merge(idx *index, headers []*fileHeader) error {
	var errs []error
	var unlisted []string
	holder := map[string]int{} // file that holds each name, listed or not
	total := int64(0)
	for i, h := range headers {
		for _, tensor := range h.Tensors {
			if first, ok := holder[tensor.Name]; ok {
				errs = append(errs, &syntaxError{
					checkpoint.Files[i], "tensor " + quote(tensor.Name),
					"also in " + printable(checkpoint.Files[first]),
				})
				continue
			}
			holder[tensor.Name] = i
			if _, ok := idx.shard[tensor.Name]; !ok && idx.shard != nil {
				unlisted = append(unlisted, tensor.Name)
				continue
			}
			tensor.File = i
			total += tensor.Bytes()
			checkpoint.Tensors = append(checkpoint.Tensors, tensor)
		}
	}
	errs = append(errs, checkpoint.absent(idx, holder)...)
	if len(errs) > 0 {
		return joinErrors(errs)
	}
	if len(unlisted) > 0 {
		checkpoint.warn("%s: %d tensors of the shards are not listed and are ignored: %s", printable(idx.name), len(unlisted), quoteSome(unlisted))
	}
	if word := idx.totalSizeLie(total); word != "" {
		checkpoint.warn("%s", word)
	}
	return nil
}

// absent reports the tensors that the index names and its file lacks, by name.
func (checkpoint *Checkpoint) absent(idx *index, holder map[string]int) []error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(idx.shard)) {
		want := idx.shard[name]
		got, ok := holder[name]
		if ok && got == want {
			continue
		}
		msg := "not in " + printable(checkpoint.Files[want])
		if ok {
			msg += ", but in " + printable(checkpoint.Files[got])
		}
		errs = append(errs, &syntaxError{idx.name, "weight_map " + quote(name), msg})
	}
	return errs
}

// warnUnread names the weights in the folder that belong to no index.
func (checkpoint *Checkpoint) warnUnread(start string, names []string) {
	unread := filter(names, func(name string) bool {
		_, read := slices.BinarySearch(checkpoint.Files, name)
		return isShard(name) && notConsolidated(name) && !read
	})
	if len(unread) > 0 {
		checkpoint.warn("%s: %d other .safetensors files of the folder are ignored: %s", printable(start), len(unread), quoteSome(unread))
	}
}

func (checkpoint *Checkpoint) warn(format string, args ...any) {
	checkpoint.Warnings = append(checkpoint.Warnings, fmt.Sprintf(format, args...))
}
