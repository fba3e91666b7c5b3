package costmodel

import (
	"fmt"
	"slices"
)

// Setting names a field of a workload and a value, as in a plan file. Errors and suggestions
// contain settings; a command prints them as flags. Value is empty if the field alone is meant.
type Setting struct{ Field, Value string }

// String is field=value, or the field.
func (setting Setting) String() string {
	if setting.Value == "" {
		return setting.Field
	}
	return setting.Field + "=" + setting.Value
}

// Set is a setting with a value of any kind.
func Set(field string, value any) Setting { return Setting{field, fmt.Sprint(value)} }

// Message is a text that names settings: the text of an error of the library.
type Message struct {
	format string
	args   []any
}

// Messagef makes a message of [fmt]'s verbs. Arguments of type [Setting] and
// [Message] are formatted when the message is printed; take %v or %s for them.
func Messagef(format string, args ...any) Message { return Message{format, args} }

// Words is the message with its settings as name says them.
func (message Message) Words(name func(Setting) string) string {
	args := slices.Clone(message.args)
	for i, arg := range args {
		switch part := arg.(type) {
		case Setting:
			args[i] = name(part)
		case Message:
			args[i] = part.Words(name)
		}
	}
	return fmt.Sprintf(message.format, args...)
}

// String is the message with its settings as [Setting.String] has them.
func (message Message) String() string { return message.Words(Setting.String) }
