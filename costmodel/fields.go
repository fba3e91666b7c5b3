package costmodel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Field is one part of a [Workload] that can be asked for. It is declared once,
// in [Fields]; what parses, checks, compares or tells workloads reads it there.
type Field struct {
	// Name is that of a plan file.
	Name string
	// Default is what leaving the field out means; empty where the model, the
	// strategy or the engine says what is left out.
	Default string
	// Values are those that are known, the default first; nil where the field
	// has no named values.
	Values []string
	// Ref points to the field of a workload: *int64, *bool, *[]string, or a
	// pointer to a type of named values.
	Ref func(w *Workload) any

	value   func(w *Workload) string
	set     func(w *Workload, value string)
	copy    func(to, from *Workload)
	implied func(w *Workload) bool
	// followed: the value was found, and was not asked for.
	followed func(w *Workload) bool
	// open: it may be empty once the workload is resolved.
	open  func(w *Workload) bool
	least int64 // of a number
}

// Text is the value of the field in a workload; empty where it is left out, or
// could be.
func (f *Field) Text(w *Workload) string {
	value := f.value(w)
	if value == f.Default || f.followed != nil && f.followed(w) {
		return ""
	}
	return value
}

// Set gives a field of named values a value, which need not be a known one.
func (f *Field) Set(w *Workload, value string) { f.set(w, value) }

// Copy gives a workload the field of another.
func (f *Field) Copy(to, from *Workload) { f.copy(to, from) }

// Implied reports that the strategy alone would give the field its value.
func (f *Field) Implied(w *Workload) bool { return f.implied != nil && f.implied(w) }

// Fields are all that can be asked for, in the order in which they are told:
// what runs, its sizes, its numbers, what is trained, and how it is spread.
// Two workloads differ by the fields that differ.
func Fields() []Field { return slices.Clone(fields) }

var fields = []Field{
	named("mode", string(Infer), []Mode{Infer, Train, Load}, func(w *Workload) *Mode { return &w.Mode }),
	number("batch", "1", func(w *Workload) *int64 { return &w.Batch }),
	number("micro_batches", "1", func(w *Workload) *int64 { return &w.MicroBatches }),
	number("seq", "", func(w *Workload) *int64 { return &w.Seq }),
	number("target_seq", "", func(w *Workload) *int64 { return &w.TargetSeq }),
	number("new_tokens", "0", func(w *Workload) *int64 { return &w.NewTokens }),
	number("images", "0", func(w *Workload) *int64 { return &w.Images }),
	number("image_size", "", func(w *Workload) *int64 { return &w.ImageSize }),
	storedPrecision(),
	training(named("optimizer", string(AdamW), []Optimizer{AdamW, AdamWForeach, AdamW8bit, SGD, SGDMomentum, Adafactor, Muon}, func(w *Workload) *Optimizer { return &w.Optimizer })),
	training(named("recompute", string(RecomputeNone), []Recompute{RecomputeNone, RecomputeFull, RecomputeSelective}, func(w *Workload) *Recompute { return &w.Recompute })),
	number("lora_rank", "0", func(w *Workload) *int64 { return &w.LoRARank }),
	list("lora_targets", func(w *Workload) *[]string { return &w.LoRATargets }),
	optional(named("lora_precision", "", []AdapterPrecision{AdaptersFP32, AdaptersBF16}, func(w *Workload) *AdapterPrecision { return &w.LoRAPrecision })),
	unlessDefault(named("quantize", "off", []Quantize{NF4, Int8}, func(w *Workload) *Quantize { return &w.Quantize })),
	unlessDefault(named("loss", string(LossEager), []Loss{LossEager, LossChunked, LossFused}, func(w *Workload) *Loss { return &w.Loss })),
	unlessDefault(named("attention", string(SDPA), []AttentionKernel{SDPA, EagerAttention, FlashAttention}, func(w *Workload) *AttentionKernel { return &w.Attention })),
	toggle("loss_only", func(w *Workload) *bool { return &w.LossOnly }),
	toggle("gradient_as_bucket_view", func(w *Workload) *bool { return &w.GradientViews }),
	toggle("ema", func(w *Workload) *bool { return &w.EMA }),
	named("strategy", "", Strategies(), func(w *Workload) *Strategy { return &w.Strategy }),
	byStrategy(named("runtime", "", []Runtime{Accelerate, DeepSpeed, Torch, Lightning}, func(w *Workload) *Runtime { return &w.Runtime }),
		func(w *Workload) bool { return slices.Index(w.Strategy.Traits().Runtimes, w.Runtime) == 0 }),
	byStrategy(optional(named("schedule", "", []ScheduleKind{OneFOneB, GPipe, Interleaved}, func(w *Workload) *ScheduleKind { return &w.Schedule })),
		func(w *Workload) bool { return w.Schedule == OneFOneB }),
	number("virtual_stages", "", func(w *Workload) *int64 { return &w.VirtualStages }),
	number("shard_degree", "", func(w *Workload) *int64 { return &w.ShardDegree }),
}

// named is a field of named values.
func named[T ~string](name, otherwise string, values []T, at func(*Workload) *T) Field {
	f := Field{Name: name, Default: otherwise, Ref: func(w *Workload) any { return at(w) }}
	for _, value := range values {
		f.Values = append(f.Values, string(value))
	}
	f.value = func(w *Workload) string { return string(*at(w)) }
	f.set = func(w *Workload, value string) { *at(w) = T(value) }
	f.copy = func(to, from *Workload) { *at(to) = *at(from) }
	return f
}

// training is a field that may be empty where nothing is trained.
func training(f Field) Field {
	f.open = func(w *Workload) bool { return w.Mode != Train }
	return f
}

// optional is a field that may be empty.
func optional(f Field) Field {
	f.open = func(*Workload) bool { return true }
	return f
}

// unlessDefault is a field that is empty where it has its default.
func unlessDefault(f Field) Field {
	set := f.set
	f.set = func(w *Workload, value string) {
		if value == f.Default {
			value = ""
		}
		set(w, value)
	}
	return optional(f)
}

// byStrategy is a field whose value may follow from the strategy.
func byStrategy(f Field, implied func(*Workload) bool) Field {
	f.implied = implied
	return f
}

// storedPrecision is left out where tensors keep the types they are stored in.
func storedPrecision() Field {
	f := named("precision", "", []Precision{BF16True, BF16Mixed, FP16Mixed, FP16True, FP32True}, func(w *Workload) *Precision { return &w.Precision })
	f.followed = func(w *Workload) bool { return w.StoredTypes }
	f.copy = func(to, from *Workload) { to.Precision, to.StoredTypes = from.Precision, from.StoredTypes }
	return f
}

// number is a count; where it has a default that counts something, 0 is none.
func number(name, otherwise string, at func(*Workload) *int64) Field {
	f := Field{Name: name, Default: otherwise, Ref: func(w *Workload) any { return at(w) }}
	if otherwise == "1" {
		f.least = 1
	}
	f.value = func(w *Workload) string {
		if *at(w) == 0 {
			return ""
		}
		return strconv.FormatInt(*at(w), 10)
	}
	f.copy = func(to, from *Workload) { *at(to) = *at(from) }
	return f
}

func list(name string, at func(*Workload) *[]string) Field {
	return Field{
		Name: name, Ref: func(w *Workload) any { return at(w) },
		value: func(w *Workload) string { return strings.Join(*at(w), ",") },
		copy:  func(to, from *Workload) { *at(to) = *at(from) },
	}
}

// toggle is a field that is off unless it is asked for.
func toggle(name string, at func(*Workload) *bool) Field {
	return Field{
		Name: name, Default: "false", Ref: func(w *Workload) any { return at(w) },
		value: func(w *Workload) string { return strconv.FormatBool(*at(w)) },
		copy:  func(to, from *Workload) { *at(to) = *at(from) },
	}
}

// Fault is the first field of a resolved workload that is no value of its
// kind: its name and what is wrong. Whether the fields go together is not
// looked at. Empty where all are values.
func (w *Workload) Fault() (field, msg string) {
	for i := range fields {
		if f := &fields[i]; f.Values != nil && !f.known(w) {
			return f.Name, fmt.Sprintf("%q is unknown (known: %s)", f.value(w), strings.Join(f.Values, ", "))
		}
	}
	return w.badNumber()
}

func (f *Field) known(w *Workload) bool {
	value := f.value(w)
	return slices.Contains(f.Values, value) || value == "" && f.open != nil && f.open(w)
}

// badNumber is the first number that counts nothing.
func (w *Workload) badNumber() (field, msg string) {
	counts := append(slices.Clone(fields), number("world", "", func(w *Workload) *int64 { return &w.World }))
	for i := range counts {
		const most = 1 << 32
		f := &counts[i]
		if n, ok := f.Ref(w).(*int64); ok && (*n < f.least || *n > most) {
			return f.Name, fmt.Sprintf("%d is not between %d and 2^32", *n, f.least)
		}
	}
	if w.Batch%w.MicroBatches != 0 {
		return "micro_batches", fmt.Sprintf("%d does not divide the batch of %d", w.MicroBatches, w.Batch)
	}
	return "", ""
}
