package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// once is a flag that takes one value: of two, pflag keeps the last without a
// word. A switch may be repeated as it is.
type once struct {
	pflag.Value
	given bool
}

// Set implements pflag's Value.
func (o *once) Set(value string) error {
	before := o.String()
	if o.given && (o.Type() != "bool" || value != before) {
		return &repeatedError{before, value}
	}
	if err := o.Value.Set(value); err != nil {
		return err
	}
	o.given = true
	return nil
}

// repeatedError is a second value for a flag that takes one.
type repeatedError struct{ first, second string }

// Error implements error.
func (e *repeatedError) Error() string {
	return fmt.Sprintf("it takes one value and has two, %q and %q", e.first, e.second)
}

// single makes every flag of a command that is no list take one value.
func single(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, list := f.Value.(pflag.SliceValue); !list {
			f.Value = &once{Value: f.Value}
		}
	})
}

// flagError words what pflag says of flags.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	var repeated *repeatedError
	switch {
	case errors.As(err, &repeated) && errors.As(err, &invalid):
		err = fmt.Errorf("--%s: %w", invalid.GetFlag().Name, repeated)
	case errors.As(err, &invalid):
		if why := unreadable(invalid); why != "" {
			err = fmt.Errorf("invalid argument %q for \"--%s\" flag: %s", invalid.GetValue(), invalid.GetFlag().Name, why)
		}
	case errors.As(err, &unknown) && !cmd.HasParent() && cmd.HasAvailableSubCommands():
		return out.Usagef("%w: flags follow the command, as in devmap plan MODEL --gpus 4 (devmap help)", err)
	case errors.As(err, &unknown):
		if ours := elsewhere[unknown.GetSpecifiedName()]; ours != "" && cmd.Flags().Lookup(ours) != nil {
			err = fmt.Errorf("%w: did you mean --%s?", err, ours)
		}
	}
	return out.Usagef("%w (devmap help %s)", err, cmd.Name())
}

// unreadable says why a value is none of its flag's type; empty where pflag's
// own words do.
func unreadable(e *pflag.InvalidValueError) string {
	switch kind := e.GetFlag().Value.Type(); {
	case kind == "bool":
		return "neither true nor false"
	case kind == "duration":
		return "not a time: write 30s, 5m or 1h"
	case errors.Is(e, strconv.ErrRange):
		return "value out of range"
	case errors.Is(e, strconv.ErrSyntax):
		return "not a whole number" + spelled(e.GetValue())
	}
	return ""
}

// spelled spells out a number with a suffix, which tells 8192 from 8000.
func spelled(value string) string {
	if value == "" {
		return ""
	}
	n, err := strconv.ParseFloat(value[:len(value)-1], 64)
	if err != nil || !(n > 0 && n < 1e6) {
		return ""
	}
	switch strings.ToLower(value[len(value)-1:]) {
	case "k":
		return fmt.Sprintf(": write %.0f or %.0f", n*1024, n*1000)
	case "m":
		return fmt.Sprintf(": write %.0f or %.0f", n*(1<<20), n*1e6)
	}
	return ""
}

// elsewhere are flags as other programs call them.
var elsewhere = map[string]string{
	"batch-size": "batch", "per-device-train-batch-size": "batch", "per_device_train_batch_size": "batch", "bs": "batch",
	"seq-len": "seq", "seq-length": "seq", "sequence-length": "seq", "max-length": "seq", "max_length": "seq", "max-seq-len": "seq", "max-model-len": "seq", "context": "seq",
	"dtype": "precision", "torch-dtype": "precision", "torch_dtype": "precision", "bf16": "precision", "fp16": "precision",
	"num-gpus": "gpus", "ngpus": "gpus", "n-gpus": "gpus", "nproc-per-node": "gpus", "devices": "gpus", "gpu-count": "gpus",
	"optim": "optimizer", "gradient-checkpointing": "recompute", "gradient_checkpointing": "recompute", "activation-checkpointing": "recompute",
	"gradient-accumulation-steps": "micro-batches", "gradient_accumulation_steps": "micro-batches", "microbatches": "micro-batches", "chunks": "micro-batches",
	"max-new-tokens": "new-tokens", "max_new_tokens": "new-tokens", "lora-r": "lora-rank", "lora_rank": "lora-rank",
	"engine": "for", "target": "for", "out": "output", "timeout": "time-limit", "max-memory": "gpus", "device-map": "strategy", "load-in-4bit": "quantize", "load-in-8bit": "quantize",
}
