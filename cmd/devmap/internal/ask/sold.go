package ask

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
)

// decimalSize matches a size as GPUs are sold: a whole number of GB.
var decimalSize = regexp.MustCompile(`^([1-9]\d{0,3}) ?[gG][bB]$`)

// soldAs returns the usable bytes of a GPU sold as a size such as 48GB, and the GPU they are from:
// the least of the catalogue's GPUs of that size. GPUs whose ECC codes take memory count only if
// there are no others: most users who give only a size have a card without them. So 48GB is 47.5
// GiB, from the RTX A6000. A size that no GPU is sold as stays a decimal number.
func soldAs(text string) (bytes int64, like string) {
	found := decimalSize.FindStringSubmatch(strings.TrimSpace(text))
	if found == nil {
		return 0, ""
	}
	sold := ofSize(found[1])
	plain := slices.DeleteFunc(slices.Clone(sold), func(gpu catalogue.GPU) bool { return gpu.ECCTakesMemory })
	if len(plain) > 0 {
		sold = plain
	}
	if len(sold) == 0 {
		return 0, ""
	}
	least := slices.MinFunc(sold, byUsable)
	return usable(&least), least.Name
}

// ofSize returns the catalogue's GPUs that are sold as so many GB.
func ofSize(count string) []catalogue.GPU {
	var sold []catalogue.GPU
	for _, name := range catalogue.Names() {
		if gpu, err := catalogue.Find(name); err == nil && strconv.FormatInt(gpu.SoldGB, 10) == count {
			sold = append(sold, gpu)
		}
	}
	return sold
}

func byUsable(a, b catalogue.GPU) int { return cmp.Compare(usable(&a), usable(&b)) }

// usable returns the bytes that a process finds free on an idle GPU.
func usable(gpu *catalogue.GPU) int64 { return gpu.CapacityBytes - gpu.ReservedBytes }

// soldNotes returns notes on sizes in --gpus that GPUs are sold as, and the bytes used for them.
func soldNotes(gpus string) []string {
	var notes []string
	for _, part := range strings.Split(gpus, ",") {
		bytes, like := soldAs(part)
		if like == "" {
			continue
		}
		count := decimalSize.FindStringSubmatch(strings.TrimSpace(part))[1]
		note := fmt.Sprintf("--gpus %sGB is the size that a GPU is sold as: %s can be used, as %s shows", count, costmodel.Bytes(bytes), like)
		if slices.ContainsFunc(ofSize(count), func(gpu catalogue.GPU) bool { return gpu.ECCTakesMemory && usable(&gpu) < bytes }) {
			note += " (with ECC less: devmap gpus)"
		}
		if note += "; " + count + "GiB is exact"; !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return notes
}

// HardwareNotes returns notes on parts of a workload that the named GPUs cannot run, and on GPUs
// without published rates.
func HardwareNotes(topology *costmodel.Topology, workload *costmodel.Workload) []string {
	fp16 := costmodel.FP16True
	if workload.Precision == costmodel.BF16Mixed || workload.Mode == costmodel.Train {
		fp16 = costmodel.FP16Mixed
	}
	var notes []string
	add := func(gpu *catalogue.GPU, is bool, note string) {
		if note = gpu.Name + ": " + note; is && !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	for i := range topology.Devices {
		gpu, err := catalogue.Find(topology.Devices[i].Name)
		if err != nil {
			continue
		}
		add(&gpu, topology.Devices[i].FLOPS == 0 && workload.Mode != costmodel.Load, "no published rate of matrix products is known here, so no step time is predicted; memory is")
		bf16 := workload.Precision == costmodel.BF16True || workload.Precision == costmodel.BF16Mixed
		add(&gpu, bf16 && strings.HasPrefix(gpu.ComputeCapability, "7."), fmt.Sprintf("no arithmetic for bf16 (compute capability below 8.0): PyTorch emulates it, slower than the fp16 that any step time is for; --precision %s uses fp16", fp16))
		add(&gpu, strings.HasPrefix(gpu.ComputeCapability, "gfx"), "the memory outside tensors (context, libraries) and how much of a rate is reached are those of NVIDIA GPUs; nothing was measured on AMD's")
	}
	return notes
}
