package show

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
)

// Header prints model, purpose, GPUs and strategy, then the default settings with their flags.
func (printer *Printer) Header(topology *costmodel.Topology, defaults []string) {
	parts := []string{out.Cell(printer.graph.Name), printer.doing(), gpusOf(topology), printer.spread()}
	printer.title(parts, defaults)
}

// title prints the parts of a title and the default settings.
func (printer *Printer) title(parts, defaults []string) {
	lines := strings.Split(joined(parts, " · ", "  ", printer.width), "\n")
	for i, line := range lines {
		if text.StringWidth(line) > printer.width {
			lines[i] = joined(strings.Split(line, ", "), ", ", "  ", printer.width)
		}
	}
	printer.printf("%s\n", out.Block(strings.Join(lines, "\n")))
	if len(defaults) > 0 {
		printer.printf("%s\n", out.Block(joined(append([]string{"Defaults: " + defaults[0]}, defaults[1:]...), ", ", "  ", printer.width)))
	}
}

// joined joins parts, and starts a new line before a part that does not fit.
func joined(parts []string, between, indent string, width int) string {
	var lines []string
	line := ""
	for i, part := range parts {
		after := between // room for the separator if another part follows
		if i == len(parts)-1 {
			after = ""
		}
		switch {
		case line == "":
			line = part
		case text.StringWidth(line+between+part+strings.TrimRight(after, " ")) > width:
			lines = append(lines, line+strings.TrimRight(between, " "))
			line = indent + part
		default:
			line += between + part
		}
	}
	return strings.Join(append(lines, line), "\n")
}

// gpusOf names the GPUs: 4 × h200-141gb. It adds the capacity if it differs from the catalogue's.
func gpusOf(topology *costmodel.Topology) string {
	var parts []string
	for i := 0; i < len(topology.Devices); {
		name, end := gpuName(&topology.Devices[i]), i+1
		for end < len(topology.Devices) && gpuName(&topology.Devices[end]) == name {
			end++
		}
		parts = append(parts, fmt.Sprintf("%d × %s", end-i, name))
		i = end
	}
	const most = 4
	if len(parts) > most {
		return Plural(len(topology.Devices), "GPU")
	}
	return strings.Join(parts, " + ")
}

func gpuName(device *costmodel.Device) string {
	known, err := catalogue.Find(device.Name)
	if device.Name == "" || err == nil && known.CapacityBytes != device.CapacityBytes {
		return costmodel.Bytes(device.CapacityBytes).String()
	}
	return out.Cell(device.Name)
}

// doing describes the workload in a few words.
func (printer *Printer) doing() string {
	workload := &printer.work
	stored := ""
	if printer.graph != nil {
		stored = ask.StoredAs(printer.graph, workload)
	}
	if workload.Mode == costmodel.Load {
		return "weights only, " + cmp.Or(stored, string(workload.Precision))
	}
	if workload.Mode == costmodel.Serve {
		return fmt.Sprintf("serving %s × %s tokens, %s cache", grouped(workload.Sequences), grouped(workload.Context), workload.KVType)
	}
	parts := []string{"inference", printer.sizes(), string(workload.Precision)}
	if stored != "" {
		parts[2] = stored + " weights, " + parts[2] + " activations"
	}
	if workload.Mode == costmodel.Train {
		parts[0] = "training"
		if printer.Implied != "" {
			parts[0] += " (" + printer.Implied + " implies it)"
		}
		parts = append(parts, printer.trained()...)
	} else if workload.NewTokens > 0 {
		parts = append(parts, Plural(workload.NewTokens, "new token"))
	}
	if workload.LoRARank > 0 {
		parts = append(parts, fmt.Sprintf("LoRA rank %d", workload.LoRARank))
	}
	if workload.Quantize != "" {
		parts = append(parts, workload.Quantize+" weights")
	}
	if workload.Attention != "" {
		parts = append(parts, workload.Attention+" attention")
	}
	if workload.Packing != "" {
		parts = append(parts, workload.Packing+" rows")
	}
	switch {
	case workload.ImagesMean > 0:
		parts = append(parts, images(workload))
	case workload.Images > 0:
		parts = append(parts, Plural(workload.Images, "image")+" a sequence")
	}
	return strings.Join(parts, ", ")
}

// images describes the mean and the largest number of images.
func images(workload *costmodel.Workload) string {
	what := "images"
	if workload.ImagesMean == 1 {
		what = "image"
	}
	return fmt.Sprintf("%v %s a sequence, at most %d", workload.ImagesMean, what, workload.Images)
}

// trained lists the settings of training.
func (printer *Printer) trained() []string {
	workload := &printer.work
	parts := []string{workload.Optimizer}
	if workload.MicroBatches > 1 {
		parts = append(parts, Plural(workload.MicroBatches, "micro-batch"))
	}
	if workload.Recompute != costmodel.RecomputeNone {
		parts = append(parts, "recompute "+workload.Recompute)
	}
	if workload.OffloadActivations != "" {
		parts = append(parts, "offload-activations "+workload.OffloadActivations)
	}
	if workload.Float8 != "" {
		parts = append(parts, "float8 "+workload.Float8)
	}
	if workload.Loss != "" {
		parts = append(parts, workload.Loss+" loss")
	}
	if workload.EMA {
		parts = append(parts, "EMA")
	}
	return parts
}

// sizes returns the batch and, if the model's length is variable, the sequence.
func (printer *Printer) sizes() string {
	workload := &printer.work
	size := fmt.Sprintf("batch %d", workload.Batch)
	if workload.Seq > 0 && (printer.graph == nil || estimate.CheckLengths(printer.graph, true, false) == nil) {
		size += fmt.Sprintf(" × %d", workload.Seq)
	}
	if workload.TargetSeq != workload.Seq && printer.graph != nil && estimate.CheckLengths(printer.graph, false, true) == nil {
		size += fmt.Sprintf(" (target %d)", workload.TargetSeq)
	}
	if workload.Strategy.Traits().Replicated && workload.Runtime != "jax" {
		size += " per GPU"
	}
	return size
}

// spread returns the strategy and its engine.
func (printer *Printer) spread() string {
	workload := &printer.work
	if workload.Mode == costmodel.Serve {
		return workload.Runtime
	}
	name := string(workload.Strategy)
	if workload.Strategy.Traits().Staged {
		name += " " + scheduleName(workload.Schedule)
	}
	name += " (" + workload.Runtime + ")"
	if degrees := openDegrees(workload); degrees != "" {
		return name + degrees
	}
	if workload.DP != 0 || workload.TP != 0 || workload.CP != 0 {
		name += fmt.Sprintf(", stages of %v × %v GPUs (data × tensor parallel)", workload.DP, workload.TP)
		if workload.CP != 0 {
			name += fmt.Sprintf(" × %v (context parallel)", workload.CP)
		}
		if workload.EP != 0 {
			name += fmt.Sprintf(", experts over %v", workload.EP)
		}
	}
	return name
}

// openDegrees returns all degrees of a pipeline, if one of them is automatic.
func openDegrees(workload *costmodel.Workload) string {
	degrees, open := degreesSet(workload)
	if !open {
		return ""
	}
	return degrees
}

// how returns the strategy, unless it is the usual one.
func (printer *Printer) how() string {
	if printer.work.Strategy.Traits().Sequential {
		return ""
	}
	return ", " + printer.spread()
}
