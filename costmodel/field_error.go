package costmodel

// FieldError is a workload, or a problem posed on it, that contradicts itself
// or the model.
type FieldError struct {
	// Field is at fault, as a plan file names it: micro_batches.
	Field string
	// Value is what it was, where a value is at fault.
	Value string
	// Msg says why, and what works.
	Msg Message
	// Works are values that are taken in its place, the nearest first, where
	// they can be listed.
	Works []string
}

// Error implements error.
func (e *FieldError) Error() string { return e.Words(Setting.String) }

// Words is the error with its settings as name says them.
func (e *FieldError) Words(name func(Setting) string) string {
	return name(Setting{Field: e.Field}) + ": " + e.Msg.Words(name)
}
