package costmodel

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// Field is one part of a [Workload] that can be asked for. It is declared once, in [Fields]; what
// parses, checks, compares or prints workloads reads it there.
type Field struct {
	// Name is the field's name in a plan file.
	Name string
	// Default is the value of a field that is left out; empty if model, strategy or engine decide.
	Default string
	// Values are the known values, the default first; nil if the field has no named values.
	Values []string
	// Ref points to the workload's field: *int64, *bool, *[]string, a pointer to a string or to a
	// type of named values, or a *Degree, which parses its own text.
	Ref func(workload *Workload) any
	// Text is the value of the field in a workload; empty if it is left out, or could be.
	Text func(workload *Workload) string
	// Set gives a field of named values a value, known or not.
	Set func(workload *Workload, value string)
	// Copy gives a workload the field of another.
	Copy func(to, from *Workload)
	// Implied reports that the strategy alone would give the field its value.
	Implied func(workload *Workload) bool

	value func(workload *Workload) string
	// followed: the value was found, and was not asked for.
	followed func(workload *Workload) bool
	// open: it may be empty once the workload is resolved.
	open  func(workload *Workload) bool
	least int64 // of a number
	// Forms describes the form of values that are not among Values.
	Forms []string
	other otherForm
}

// Fields lists all fields of a workload in printing order: what runs, its sizes, its numbers, what
// is trained, and how the model is spread.
func Fields() []Field { return slices.Clone(fields) }

var fields = described([]Field{
	named("mode", string(Infer), []Mode{Infer, Train, Load, Serve}, func(workload *Workload) *Mode { return &workload.Mode }),
	number("batch", "1", func(workload *Workload) *int64 { return &workload.Batch }),
	number("micro_batches", "1", func(workload *Workload) *int64 { return &workload.MicroBatches }),
	number("seq", "", func(workload *Workload) *int64 { return &workload.Seq }),
	number("target_seq", "", func(workload *Workload) *int64 { return &workload.TargetSeq }),
	number("new_tokens", "0", func(workload *Workload) *int64 { return &workload.NewTokens }),
	images(),
	number("image_size", "", func(workload *Workload) *int64 { return &workload.ImageSize }),
	number("max_pixels", "", func(workload *Workload) *int64 { return &workload.MaxPixels }),
	unlessDefault(named("packing", trainer.Padded, trainer.Packings(), func(workload *Workload) *string { return &workload.Packing })),
	fraction("label_tokens", func(workload *Workload) *float64 { return &workload.LabelTokens }),
	storedPrecision(),
	training(named("optimizer", AdamW, []string{AdamW, value.AdamWForeach, value.AdamW8bit, SGD, value.SGDMomentum, value.Adafactor, value.Muon, value.PagedAdamW8bit, value.PagedAdamW32bit, value.AdamWTorch8bit, value.AdamWTorch4bit}, func(workload *Workload) *string { return &workload.Optimizer })),
	toggle("optimizer_in_backward", func(workload *Workload) *bool { return &workload.OptimizerInBackward }),
	training(orLists(named("recompute", RecomputeNone, []string{RecomputeNone, RecomputeFull, value.RecomputeSelective, value.RecomputeAuto}, func(workload *Workload) *string { return &workload.Recompute }), blockForm)),
	unlessDefault(orLists(named("offload_activations", "none", []string{"none", OffloadAll, value.RecomputeAuto}, func(workload *Workload) *string { return &workload.OffloadActivations }), blockForm)),
	number("lora_rank", "0", func(workload *Workload) *int64 { return &workload.LoRARank }),
	list("lora_targets", func(workload *Workload) *[]string { return &workload.LoRATargets }),
	optional(named("lora_precision", "", []string{value.AdaptersFP32, value.AdaptersBF16}, func(workload *Workload) *string { return &workload.LoRAPrecision })),
	toggle("lora_dropout", func(workload *Workload) *bool { return &workload.LoRADropout }),
	unlessDefault(named("quantize", "off", []string{value.NF4, value.Int8}, func(workload *Workload) *string { return &workload.Quantize })),
	unlessDefault(named("float8", "off", []string{value.Tensorwise, value.TensorwiseGathered, value.Rowwise}, func(workload *Workload) *string { return &workload.Float8 })),
	unlessDefault(named("loss", value.LossEager, []string{value.LossEager, value.LossChunked, value.LossFused, value.LossTiled}, func(workload *Workload) *string { return &workload.Loss })),
	unlessDefault(named("attention", value.SDPA, []string{value.SDPA, value.EagerAttention, value.FlashAttention}, func(workload *Workload) *string { return &workload.Attention })),
	unlessDefault(named("kernels", value.TorchKernels, []string{value.TorchKernels, value.PackageKernels}, func(workload *Workload) *string { return &workload.Kernels })),
	toggle("liger", func(workload *Workload) *bool { return &workload.Liger }),
	toggle("compile", func(workload *Workload) *bool { return &workload.Compile }),
	toggle("loss_only", func(workload *Workload) *bool { return &workload.LossOnly }),
	toggle("gradient_as_bucket_view", func(workload *Workload) *bool { return &workload.GradientViews }),
	byStrategy(unlessDefault(named("preset", trainer.Loop, trainer.Names(), func(workload *Workload) *string { return &workload.Preset })),
		func(workload *Workload) bool { return workload.Preset == usualPreset(workload) }),
	optional(named("built_on", "", []string{value.BuiltOnGPU, value.BuiltOnCPU}, func(workload *Workload) *string { return &workload.BuiltOn })),
	number("eval_batch", "0", func(workload *Workload) *int64 { return &workload.EvalBatch }),
	number("eval_samples", "0", func(workload *Workload) *int64 { return &workload.EvalSamples }),
	toggle("ema", func(workload *Workload) *bool { return &workload.EMA }),
	named("strategy", "", Strategies(), func(workload *Workload) *Strategy { return &workload.Strategy }),
	byStrategy(named("runtime", "", []string{value.Accelerate, value.DeepSpeed, value.Torch, value.Lightning, value.JAX, value.Torchtitan, value.Megatron, LlamaCPP, VLLM, SGLang, Devmap}, func(workload *Workload) *string { return &workload.Runtime }),
		func(workload *Workload) bool {
			return slices.Index(workload.Strategy.Traits().Runtimes, workload.Runtime) == 0
		}),
	byStrategy(optional(orLists(named("schedule", "", append(ScheduleKinds(), AutoSchedule), func(workload *Workload) *ScheduleKind { return &workload.Schedule }), orderForm)),
		func(workload *Workload) bool { return workload.Schedule == OneFOneB }),
	number("virtual_stages", "", func(workload *Workload) *int64 { return &workload.VirtualStages }),
	degree("dp", func(workload *Workload) *Degree { return &workload.DP }),
	degree("tp", func(workload *Workload) *Degree { return &workload.TP }),
	degree("cp", func(workload *Workload) *Degree { return &workload.CP }),
	degree("ep", func(workload *Workload) *Degree { return &workload.EP }),
	degree("pp", func(workload *Workload) *Degree { return &workload.PP }),
	toggle("sequence_parallel", func(workload *Workload) *bool { return &workload.SequenceParallel }),
	fraction("expert_capacity", func(workload *Workload) *float64 { return &workload.ExpertCapacity }),
	toggle("uniform", func(workload *Workload) *bool { return &workload.Uniform }),
	number("shard_degree", "", func(workload *Workload) *int64 { return &workload.ShardDegree }),
	fraction("mem_fraction", func(workload *Workload) *float64 { return &workload.MemFraction }),
})

// usualPreset is the preset of a workload without one: Transformers' Trainer if Accelerate runs the
// strategy, else a loop by hand (empty). The Trainer can recompute only whole blocks.
func usualPreset(workload *Workload) string {
	usual := trainer.Of(trainer.Usual)
	if workload.Mode != Train || workload.Recompute == value.RecomputeSelective || !slices.Contains(usual.Strategies, string(workload.Strategy)) {
		return ""
	}
	if accelerate := workload.Strategy.Traits().Runtimes[0]; workload.Runtime != "" && workload.Runtime != accelerate {
		return ""
	}
	return usual.Name
}

// described adds the functions that all fields share.
func described(fields []Field) []Field {
	for i := range fields {
		field := fields[i]
		fields[i].Text = func(workload *Workload) string {
			value := field.value(workload)
			if value == field.Default || field.followed != nil && field.followed(workload) {
				return ""
			}
			return value
		}
		if field.Implied == nil {
			fields[i].Implied = func(*Workload) bool { return false }
		}
	}
	return fields
}

// named is a field of named values.
func named[T ~string](name, defaultValue string, values []T, at func(*Workload) *T) Field {
	field := Field{Name: name, Default: defaultValue, Ref: func(workload *Workload) any { return at(workload) }}
	for _, value := range values {
		field.Values = append(field.Values, string(value))
	}
	field.value = func(workload *Workload) string { return string(*at(workload)) }
	field.Set = func(workload *Workload, value string) { *at(workload) = T(value) }
	field.Copy = func(to, from *Workload) { *at(to) = *at(from) }
	return field
}

// training is a field that may be empty if nothing is trained.
func training(field Field) Field {
	field.open = func(workload *Workload) bool { return workload.Mode != Train }
	return field
}

// otherForm is a form of values that have no names. Errors describe it in two places: known in a list
// of known values, sound in what is wrong with a text.
type otherForm struct {
	known, sound string
	meant        func(text string) bool  // as a value of the form
	read         func(text string) error // what is wrong with it
}

func second[T any](_ T, err error) error { return err }

// orLists is a field of named values that also has values of another form.
func orLists(field Field, form otherForm) Field {
	field.other, field.Forms = form, []string{form.known}
	return field
}

// optional is a field that may be empty.
func optional(field Field) Field {
	field.open = func(*Workload) bool { return true }
	return field
}

// unlessDefault is a field that is empty if it has its default.
func unlessDefault(field Field) Field {
	set := field.Set
	field.Set = func(workload *Workload, value string) {
		if value == field.Default {
			value = ""
		}
		set(workload, value)
	}
	return optional(field)
}

// byStrategy is a field with a value that may follow from the strategy.
func byStrategy(field Field, implied func(*Workload) bool) Field {
	field.Implied = implied
	return field
}

// storedPrecision is empty if tensors keep their stored types.
func storedPrecision() Field {
	field := named("precision", "", []Precision{BF16True, BF16Mixed, FP16Mixed, FP16True, FP32True}, func(workload *Workload) *Precision { return &workload.Precision })
	field.followed = func(workload *Workload) bool { return workload.StoredTypes }
	field.Copy = func(to, from *Workload) { to.Precision, to.StoredTypes = from.Precision, from.StoredTypes }
	return field
}

// number is a count; if it has a default that counts something, 0 is none.
func number(name, defaultValue string, at func(*Workload) *int64) Field {
	field := Field{Name: name, Default: defaultValue, Ref: func(workload *Workload) any { return at(workload) }}
	if defaultValue == "1" {
		field.least = 1
	}
	field.value = func(workload *Workload) string {
		if *at(workload) == 0 {
			return ""
		}
		return strconv.FormatInt(*at(workload), 10)
	}
	field.Copy = func(to, from *Workload) { *at(to) = *at(from) }
	return field
}

// images is the number of images a sequence, or "mean,max".
func images() Field {
	field := number("images", "0", func(workload *Workload) *int64 { return &workload.Images })
	most := field.value
	field.value = func(workload *Workload) string {
		if workload.ImagesMean > 0 {
			return strconv.FormatFloat(workload.ImagesMean, 'g', -1, 64) + "," + most(workload)
		}
		return most(workload)
	}
	field.Copy = func(to, from *Workload) { to.Images, to.ImagesMean = from.Images, from.ImagesMean }
	return field
}

// degree is a number of GPUs, or auto.
func degree(name string, at func(*Workload) *Degree) Field {
	return Field{
		Name: name, Default: "1", Ref: func(workload *Workload) any { return at(workload) },
		value: func(workload *Workload) string { return at(workload).String() },
		Copy:  func(to, from *Workload) { *at(to) = *at(from) },
	}
}

// fraction is a part of something; 0 is not given.
func fraction(name string, at func(*Workload) *float64) Field {
	return Field{
		Name: name, Ref: func(workload *Workload) any { return at(workload) },
		value: func(workload *Workload) string {
			if *at(workload) == 0 {
				return ""
			}
			return strconv.FormatFloat(*at(workload), 'g', -1, 64)
		},
		Copy: func(to, from *Workload) { *at(to) = *at(from) },
	}
}

func list(name string, at func(*Workload) *[]string) Field {
	return Field{
		Name: name, Ref: func(workload *Workload) any { return at(workload) },
		value: func(workload *Workload) string { return strings.Join(*at(workload), ",") },
		Copy:  func(to, from *Workload) { *at(to) = *at(from) },
	}
}

// toggle is a field that is off unless it is asked for.
func toggle(name string, at func(*Workload) *bool) Field {
	return Field{
		Name: name, Default: "false", Ref: func(workload *Workload) any { return at(workload) },
		value: func(workload *Workload) string { return strconv.FormatBool(*at(workload)) },
		Copy:  func(to, from *Workload) { *at(to) = *at(from) },
	}
}

// Fault returns the name of a resolved workload's first field with an unknown value, and the error.
// Both are empty if all values are known. Fault does not check whether fields go together.
func (workload *Workload) Fault() (field, msg string) {
	for i := range fields {
		if f := &fields[i]; !f.Known(workload) {
			return f.Name, cmp.Or(f.malformed(f.value(workload)), fmt.Sprintf("%q is unknown (known: %s)", f.value(workload), strings.Join(slices.Concat(f.Values, f.Forms), ", ")))
		}
	}
	if workload.DeepSpeed != nil {
		if err := workload.DeepSpeed.Fault(); err != nil {
			return "deepspeed", err.Error()
		}
	}
	return workload.badNumber()
}

// Knows reports that a text is one of Values, or has the field's other form. The fault says what is
// wrong with a text that is meant as the other form; it is empty for all other texts.
func (field *Field) Knows(text string) (known bool, fault string) {
	return slices.Contains(field.Values, text) || field.other.read != nil && field.other.read(text) == nil, field.malformed(text)
}

// malformed says what is wrong with a text that is meant as the field's other form. It is empty for
// other texts, and for sound ones.
func (field *Field) malformed(text string) string {
	if field.other.read != nil && field.other.meant(text) && field.other.read(text) != nil {
		return fmt.Sprintf("%q is no %s: %v", text, field.other.sound, field.other.read(text))
	}
	return ""
}

// Known reports that the workload's value of the field is one of Values, or has the field's other
// form. A field without named values knows all.
func (field *Field) Known(workload *Workload) bool {
	value := field.value(workload)
	return field.Values == nil || slices.Contains(field.Values, value) || field.other.read != nil && field.other.read(value) == nil || value == "" && field.open != nil && field.open(workload)
}

// badNumber is the first number that counts nothing.
func (workload *Workload) badNumber() (field, msg string) {
	counts := append(slices.Clone(fields), number("world", "", func(w *Workload) *int64 { return &w.World }))
	for i := range counts {
		const most = 1 << 32
		f := &counts[i]
		if n, ok := f.Ref(workload).(*int64); ok && (*n < f.least || *n > most) {
			return f.Name, fmt.Sprintf("%d is not between %d and 2^32", *n, f.least)
		}
	}
	for i := range fields {
		degree, ok := fields[i].Ref(workload).(*Degree)
		if ok && *degree != AutoDegree && (*degree < 0 || *degree > mostDegree) {
			return fields[i].Name, fmt.Sprintf("%d is no number of GPUs", int64(*degree))
		}
	}
	if field, msg := workload.badSamples(); field != "" {
		return field, msg
	}
	if part := workload.MemFraction; !(part >= 0 && part <= 1) {
		return "mem_fraction", fmt.Sprintf("%v is no part of a GPU's memory: it is between 0 and 1", part)
	}
	if workload.Batch%workload.MicroBatches != 0 {
		return "micro_batches", fmt.Sprintf("%d does not divide the batch of %d", workload.MicroBatches, workload.Batch)
	}
	return "", ""
}

// badSamples is the first of a data set's numbers that no samples have.
func (workload *Workload) badSamples() (field, msg string) {
	if fault := workload.Lengths.Fault(); fault != "" {
		return "lengths", fault
	}
	if rows := workload.Rows; rows != nil && (!rows.Worst.Sound() || !rows.Usual.Sound()) {
		return "rows", "the batches have no rows of 1 to 2^32 tokens"
	}
	if mean := workload.ImagesMean; !(mean >= 0 && mean <= float64(workload.Images)) {
		return "images_mean", fmt.Sprintf("%v is not between 0 and %d, the most", mean, workload.Images)
	}
	if times := workload.ExpertCapacity; !(times >= 0 && times <= mostDegree) {
		return "expert_capacity", fmt.Sprintf("%v is no number of times the mean", times)
	}
	if fault := trainer.LabelFault(workload.LabelTokens); fault != "" {
		return "label_tokens", fault
	}
	return "", ""
}
