package watch

import (
	"fmt"
	"slices"
	"strings"
)

// Visible returns the GPUs that a process sees, in the order of its numbers for them, as indexes in
// gpus. Its CUDA_VISIBLE_DEVICES is list, which may be empty. Without one set is false.
//
// The list is read as in CUDA (CUDA C++ Programming Guide, "CUDA Environment Variables"). PyTorch
// does the same (torch/cuda/__init__.py, _parse_visible_devices and _transform_uuid_to_ordinals).
// Its entries are numbers, or unique beginnings of UUIDs. GPUs after an invalid entry are not
// visible. With one GPU twice, none is visible.
func Visible(list string, set bool, gpus []GPU) ([]int, error) {
	if !set {
		all := make([]int, len(gpus))
		for i := range all {
			all[i] = i
		}
		return all, nil
	}
	list = strings.TrimSpace(list)
	if strings.HasPrefix(list, "MIG-") {
		return nil, fmt.Errorf("CUDA_VISIBLE_DEVICES %q names an instance of a GPU in MIG mode: devmap cannot measure MIG instances; use whole GPUs", list)
	}
	find := byNumber
	if strings.HasPrefix(list, "GPU-") {
		find = byUUID
	}
	var seen []int
	for word := range strings.SplitSeq(list, ",") {
		at := find(strings.TrimSpace(word), gpus)
		if at < 0 {
			break
		}
		if slices.Contains(seen, at) {
			return nil, nil
		}
		seen = append(seen, at)
	}
	return seen, nil
}

// byNumber reads the number that a word begins with and ignores the rest, as strtoul does. It
// returns -1 if there is no such GPU.
func byNumber(word string, gpus []GPU) int {
	number, digits := 0, 0
	for _, char := range strings.TrimPrefix(word, "+") {
		if char < '0' || char > '9' || number > len(gpus) {
			break
		}
		number, digits = number*10+int(char-'0'), digits+1
	}
	if digits == 0 || number >= len(gpus) {
		return -1
	}
	return number
}

// byUUID finds the only GPU whose UUID begins with a word, else -1.
func byUUID(word string, gpus []GPU) int {
	found := -1
	for i := range gpus {
		if word == "" || !strings.HasPrefix(gpus[i].UUID, word) {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}
