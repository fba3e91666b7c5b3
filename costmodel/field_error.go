package costmodel

// FieldError is a workload, or a problem with it, that contradicts itself or the model.
type FieldError struct {
	// Field is at fault, as a plan file names it: micro_batches; empty if it is no one field.
	Field string
	// Value is the refused value; empty if the field was left out.
	Value string
	// Msg says why, and what works.
	Msg Message
}

// Refuse is the error that a setting is at fault, in the verbs of [Messagef].
func Refuse(fault Setting, format string, args ...any) *FieldError {
	return &FieldError{fault.Field, fault.Value, Messagef(format, args...)}
}

// Error implements error.
func (err *FieldError) Error() string { return err.Words(Setting.String) }

// Words is the error with its settings as name says them.
func (err *FieldError) Words(name func(Setting) string) string {
	if err.Field == "" {
		return err.Msg.Words(name)
	}
	return name(Setting{Field: err.Field}) + ": " + err.Msg.Words(name)
}
