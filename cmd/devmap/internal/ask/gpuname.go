package ask

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/modelgraph"
)

// defaultGPU is the GPU if the user names none and measures none.
const defaultGPU = "h100-80gb"

// normalise converts --gpu to the catalogue's name, and --gpus such as 4x24GB to a list.
func (asked *GPUs) normalise() error {
	if asked.cmd.Flags().Lookup("gpu") == nil { // a command without devices
		return nil
	}
	gpu, err := gpuNamed(asked.gpu)
	if err != nil {
		return err
	}
	asked.gpu = gpu
	asked.gpus = strings.TrimSpace(asked.gpus)
	count, size, found := strings.Cut(strings.NewReplacer("×", "x", "X", "x", "*", "x").Replace(asked.gpus), "x")
	number, err := strconv.Atoi(strings.TrimSpace(count))
	if !found || err != nil {
		return nil //nolint:nilerr // a count, or a list
	}
	size = strings.TrimSpace(size)
	if number < 1 || number > costmodel.MaxDevices {
		return out.Usagef("--gpus %q: %d is not 1 to %d", asked.gpus, number, costmodel.MaxDevices)
	}
	if _, err := parseSize(size); err != nil {
		if gpu, err := gpuNamed(size); err == nil {
			return out.Usagef("--gpus %q: write --gpus %d --gpu %s", asked.gpus, number, gpu)
		}
		return out.Usagef("--gpus %q: %q is no size: write 4x24GB, or --gpus 4 and --gpu NAME", asked.gpus, size)
	}
	asked.gpus = strings.Join(slices.Repeat([]string{size}, number), ",")
	return nil
}

// gpuNamed returns the only GPU of the catalogue that matches a name. h200 and 4090 match one, h100
// matches two. The error names the GPU closest to an unknown name.
func gpuNamed(name string) (string, error) {
	gpu, err := catalogue.Find(strings.TrimSpace(name))
	if err == nil {
		return gpu.Name, nil
	}
	if count, err := strconv.Atoi(strings.TrimSpace(name)); err == nil && count > 0 && count <= costmodel.MaxDevices && len(like(name)) == 0 {
		return "", out.Usagef("--gpu %d is a count, not the name of a GPU: write --gpus %d", count, count)
	}
	if strings.Contains(name, ",") {
		return "", out.Usagef("--gpu %q: it names one GPU; different ones are --gpus 80GiB,40GiB, or a file of --topology", name)
	}
	found, near := ofDriver(name), ""
	if len(found) == 0 {
		found = like(name)
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0:
		found = nearestGPU(strings.ToLower(strings.TrimSpace(name)))
	}
	if len(found) > 0 {
		near = ": did you mean " + strings.Join(found, " or ") + "?"
	}
	return "", out.Usagef("--gpu %q is unknown%s (devmap gpus lists the names; for others give the memory: --gpus 4x48GiB)", name, near)
}

// nearestGPU returns the first GPU that has the model number in a name (4080 of 4080-super), else
// the one with the most similar name, if any.
func nearestGPU(name string) []string {
	for _, gpu := range catalogue.Names() {
		if slices.ContainsFunc(gpuWords(name), func(word string) bool {
			return strings.ContainsAny(word, "0123456789") && !strings.HasSuffix(word, "gb") && slices.Contains(gpuWords(gpu), word)
		}) {
			return []string{gpu}
		}
	}
	return modelgraph.Nearest(name, catalogue.Names(), 1, max(3, len(name)/2))
}

// formWords do not distinguish GPUs of the catalogue in the names that drivers report: makers,
// series, boards and kinds of memory. The 480 GB of a GH200 are the host's.
var formWords = strings.Fields("nvidia geforce tesla quadro amd instinct rtx gpu graphics generation blackwell server workstation edition sxm " +
	"sxm2 sxm3 sxm4 sxm5 sxm6 pcie hbm2 hbm2e hbm3 hbm3e nvl oam ac 480gb")

// ofDriver lists the catalogue's GPUs for a name of nvidia-smi or torch, such as NVIDIA
// A100-SXM4-80GB: those with the same model, and size if the name has one.
func ofDriver(name string) []string {
	model, size := modelAndSize(name)
	if len(model) == 0 {
		return nil
	}
	var found []string
	for _, gpu := range catalogue.Names() {
		has, sized := modelAndSize(gpu)
		if slices.Equal(model, has) && (size == "" || sized == "" || size == sized) {
			found = append(found, gpu)
		}
	}
	return found
}

// modelAndSize returns the words of a GPU's name that distinguish it from others, and its size.
func modelAndSize(name string) (model []string, size string) {
	for _, word := range gpuWords(strings.ToLower(name)) {
		digits, sized := strings.CutSuffix(word, "gb")
		switch {
		case slices.Contains(formWords, word):
		case sized && digits != "" && strings.Trim(digits, "0123456789") == "":
			size = word
		default:
			model = append(model, word)
		}
	}
	return model, size
}

// gpuWords returns the words of a GPU's name.
func gpuWords(name string) []string {
	return strings.FieldsFunc(name, func(char rune) bool { return char == ' ' || char == '-' || char == '_' })
}

// like lists the catalogue's GPUs that a name may mean: those with all of its words, else those
// that contain it.
func like(name string) []string {
	low := strings.ToLower(name)
	for _, maker := range []string{"nvidia", "geforce", "tesla", "quadro", "amd", "instinct"} {
		low = strings.ReplaceAll(low, maker, "")
	}
	words := gpuWords(low)
	compact := strings.Join(words, "")
	if len(compact) < 2 {
		return nil
	}
	var whole, part []string
	for _, g := range catalogue.Names() {
		have := gpuWords(g)
		if !slices.ContainsFunc(words, func(word string) bool { return !slices.Contains(have, word) }) {
			whole = append(whole, g)
		}
		if strings.Contains(strings.Join(have, ""), compact) {
			part = append(part, g)
		}
	}
	if len(whole) > 0 {
		return whole
	}
	return part
}

// leastBytes is the smallest size that a flag accepts without a unit: 80 probably means 80 GiB, not
// bytes.
const leastBytes = 1 << 20

// parseSize reads a size: 80GiB, 24GB (10^9; for GPUs see [soldAs]) or a plain number of bytes.
func parseSize(text string) (int64, error) {
	count, err := humanize.ParseBytes(strings.TrimSpace(text))
	if err != nil || count > math.MaxInt64/64 {
		return 0, fmt.Errorf("%q is not a size (write 80GiB, 24GB or bytes)", text)
	}
	return int64(count), nil
}

// size reads one size of a flag's list.
func size(part string) (int64, error) {
	bytes, err := parseSize(part)
	if err != nil {
		return 0, err
	}
	if bare := strings.TrimSpace(part); bytes != 0 && bytes < leastBytes && strings.Trim(bare, "0123456789.,") == "" {
		return 0, fmt.Errorf("%q without a unit is bytes: write %sGiB", bare, bare)
	}
	return bytes, nil
}

// DeviceNotes returns notes on the GPU assumed for plain sizes, and on the sum of several reserves.
func (asked *GPUs) DeviceNotes(topology *costmodel.Topology) []string {
	var notes []string
	if _, err := strconv.Atoi(asked.gpus); err != nil && asked.gpus != "" && !asked.measures() && asked.topology == "" && !given(asked.cmd.Flags(), "gpu") {
		notes = append(notes, "--gpus gives capacities alone: speed, links and context are taken to be those of "+cmp.Or(asked.gpu, defaultGPU)+" (--gpu names another)")
	}
	if asked.topology == "" {
		notes = append(notes, soldNotes(asked.gpus)...)
	}
	if asked.nodes > 1 {
		notes = append(notes, fmt.Sprintf("--nodes %d: times count one port of 400 Gb/s between hosts for each GPU; host_bytes_per_second in a file of --topology says another", asked.nodes))
	}
	if len(asked.reserve) > 1 {
		least, most := topology.Devices[0].ReservedBytes, topology.Devices[0].ReservedBytes
		for i := range topology.Devices {
			least, most = min(least, topology.Devices[i].ReservedBytes), max(most, topology.Devices[i].ReservedBytes)
		}
		sum := costmodel.Bytes(least).String()
		if most > least {
			sum += " to " + costmodel.Bytes(most).String()
		}
		notes = append(notes, "--reserve is given "+strconv.Itoa(len(asked.reserve))+" times, and adds up: "+sum+" of each GPU is left to others")
	}
	return notes
}

// form is the number of GPUs that the degrees multiply to, as far as they are numbers.
func (asked *GPUs) form() int64 {
	product := int64(1)
	for _, name := range []string{"dp", "tp", "cp", "pp"} {
		if flag := asked.cmd.Flags().Lookup(name); flag != nil {
			if degree, err := strconv.ParseInt(flag.Value.String(), 10, 16); err == nil && degree > 0 {
				product *= degree
			}
		}
	}
	return product
}
