package ask

import (
	"errors"
	"fmt"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
)

type fieldError struct{ costmodel.Message }

func (e fieldError) Error() string { return e.String() }

// TestErrorText: an error's fields are printed as flags, also if other errors wrap it, and the rest
// of the text stays.
func TestErrorText(t *testing.T) {
	field := fieldError{costmodel.Messagef("%v is nothing (%v works)", costmodel.Setting{Field: "lora_rank"}, costmodel.Setting{Field: "mode", Value: "train"})}
	const flags = "--lora-rank is nothing (--mode train works)"
	for _, c := range []struct {
		err  error
		want string
	}{
		{field, flags},
		{errors.New("the file says mode=train"), "the file says mode=train"},
		{fmt.Errorf("mode=train: %w: z", field), "mode=train: " + flags + ": z"},
		{fmt.Errorf("a: %w", fmt.Errorf("b: %w", field)), "a: b: " + flags},
		{errors.Join(errors.New("x"), field, field), "x\n" + flags + "\n" + flags},
		{out.Usagef("%w", field), flags},
	} {
		if got := ErrorText(c.err); got != c.want {
			t.Errorf("%q: %q, not %q", c.err, got, c.want)
		}
	}
}
